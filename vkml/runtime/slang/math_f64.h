// Functions of f64 for devices, in the shape of math_f32.h; the CPU has its library's. C(x) is a constant.

MATH V pow2(I n) { return asV((n + I(1023)) << 52); }

/// Clears the low 27 bits, so that products of two results are exact.
MATH V high(V x) { return asV(asI(x) & I(~0x7ffffffl)); }

/// exp(r) - 1 for |r| <= ln2 / 2: Taylor to r^14.
MATH V expm1Reduced(V r) {
    V p = C(1.1470745597729725e-11);
    p = p * r + C(1.6059043836821613e-10);
    p = p * r + C(2.0876756987868098e-09);
    p = p * r + C(2.505210838544172e-08);
    p = p * r + C(2.755731922398589e-07);
    p = p * r + C(2.7557319223985893e-06);
    p = p * r + C(2.48015873015873e-05);
    p = p * r + C(1.984126984126984e-04);
    p = p * r + C(1.388888888888889e-03);
    p = p * r + C(8.333333333333333e-03);
    p = p * r + C(4.1666666666666664e-02);
    p = p * r + C(1.6666666666666666e-01);
    p = p * r + C(0.5);
    return p * (r * r) + r;
}

MATH V scale(V x, I n) {
    I half_ = n >> 1;
    return x * pow2(half_) * pow2(n - half_);
}

/// Splits x into n ln2 + r.
MATH V reduceExp(V x, VKML_OUT(V) n) {
    n = p_round(x * C(1.4426950408889634));
    return (x - n * C(6.93147180369123816490e-01)) - n * C(1.90821492927058770002e-10);
}

MATH V expTimes(V x, V factor) {
    V n;
    V r = reduceExp(p_min(p_max(x, C(-760.0)), C(710.0)), n);
    V y = scale((expm1Reduced(r) + C(1.0)) * factor, toI(n));
    y = pick(x < C(-760.0), pick(p_abs(factor) < infinity(x), C(0.0), nanOf(x)), y);
    return pick(isnan(x), x, y);
}
MATH V exp(V x) { return expTimes(x, C(1.0)); }

MATH V exp2(V x) {
    V c = p_min(p_max(x, C(-1080.0)), C(1025.0));
    V n = p_round(c);
    V y = scale(expm1Reduced((c - n) * C(0.6931471805599453)) + C(1.0), toI(n));
    return pick(isnan(x), x, y);
}

MATH V expm1(V x) {
    V n;
    V r = reduceExp(p_min(p_max(x, C(-40.0)), C(710.0)), n);
    V q = expm1Reduced(r);
    V t = pow2(toI(n) - I(1));  // halved: 2^1024 is no double
    V y = pick(n == C(0.0), q, (t * q + (t - C(0.5))) * C(2.0));
    return pick(isnan(x), x, y);
}

/// x = m 2^e with m in [sqrt(1/2), sqrt 2): gives m - 1 and e.
MATH V mantissa(V x, VKML_OUT(V) e) {
    I u = asI(x) - I(0x3fe6a09e667f3bcdl);
    e = toV(u >> 52);
    return asV((u & I(0xfffffffffffffl)) + I(0x3fe6a09e667f3bcdl)) - C(1.0);
}

/// The rest of log(1 + f) = f - hfsq + s (hfsq + R), as fdlibm: R for s = f / (2 + f).
MATH V logSeries(V s) {
    V z = s * s;
    V p = C(1.479819860511658591e-01);
    p = p * z + C(1.531383769920937332e-01);
    p = p * z + C(1.818357216161805012e-01);
    p = p * z + C(2.222219843214978396e-01);
    p = p * z + C(2.857142874366239149e-01);
    p = p * z + C(3.999999999940941908e-01);
    p = p * z + C(6.666666666666735130e-01);
    return p * z;
}

MATH V logEdges(V x, V y) {
    y = pick(x == C(0.0), -infinity(x), y);
    y = pick(x < C(0.0), nanOf(x), y);
    y = pick(x == infinity(x), x, y);
    return pick(isnan(x), x, y);
}

/// log(1 + f) - f, and the exponent, of a number whose edges logEdges looks after.
MATH V logParts(V x, VKML_OUT(V) f, VKML_OUT(V) e) {
    M tiny = x < C(2.2250738585072014e-308);
    f = mantissa(pick(tiny, x * C(18014398509481984.0), x), e);
    e = pick(tiny, e - C(54.0), e);
    V s = f / (f + C(2.0));
    V hfsq = f * f * C(0.5);
    return s * (hfsq + logSeries(s)) - hfsq;
}

MATH V log(V x) {
    V f;
    V e;
    V t = logParts(x, f, e);
    return logEdges(x, e * C(6.93147180369123816490e-01) + (f + (t + e * C(1.90821492927058770002e-10))));
}

MATH V log2(V x) {
    V f;
    V e;
    V t = logParts(x, f, e);
    V fh = high(f);
    V low = (f - fh) + t;
    // 1 / ln2 in two parts, the first of 26 bits.
    V y = (fh + low) * C(1.6751713164886512e-10) + low * C(1.44269504072144627571) + fh * C(1.44269504072144627571);
    return logEdges(x, e + y);
}

MATH V tanh(V x) {
    V t = expm1(p_min(p_abs(x), C(22.0)) * C(2.0));
    return pick(isnan(x), x, copysign(t / (t + C(2.0)), x));
}

/// e^(x x) erfc(x) for x in [0, 28]: a Chebyshev series in u = 1 / (1 + x / 2), by Clenshaw.
MATH V erfcx(V x) {
    V u = C(1.0) / (x * C(0.5) + C(1.0));
    V y = u * C(2.142857142857143) - C(1.1428571428571428);
    V y2 = y * C(2.0);
    V b1 = C(0.0);
    V b2 = C(0.0);
    V t;
    t = y2 * b1 - b2 + C(1.9553536360091257e-18);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(8.722695843187482e-18);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-6.517161281019474e-17);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(1.336947604393584e-16);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(4.701185468412219e-16);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-4.001789967738956e-15);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(8.223336203433073e-15);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(3.424258959634791e-14);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-2.7134340734358773e-13);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(4.2672148555800966e-13);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(3.2925511545142413e-12);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-1.9772186703146966e-11);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(6.3566734895136345e-12);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(3.7011192000638816e-10);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-1.332203480392391e-09);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-3.848611945786906e-09);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(4.109501449729079e-08);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-1.709763061596588e-08);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-9.955039304939664e-07);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(2.410776098593147e-06);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(2.555143650689826e-05);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-9.758940854054943e-05);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(-0.0009370659674508919);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(0.002571331870930267);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(0.05832594476184973);
    b2 = b1;
    b1 = t;
    t = y2 * b1 - b2 + C(0.3464978526253503);
    b2 = b1;
    b1 = t;
    return u * (y * b1 - b2 + C(0.5936125402324343));
}

/// erf(x) for |x| <= 1: Taylor.
MATH V erfSmall(V x) {
    V z = x * x;
    V p = C(-9.063970842808673e-17);
    p = p * z + C(1.6342614095367152e-15);
    p = p * z + C(-2.7835162072109212e-14);
    p = p * z + C(4.4632242632864775e-13);
    p = p * z + C(-6.71136685516411e-12);
    p = p * z + C(9.42275906465041e-11);
    p = p * z + C(-1.2290555301717928e-09);
    p = p * z + C(1.4807192815879216e-08);
    p = p * z + C(-1.6365844691234924e-07);
    p = p * z + C(1.6462114365889248e-06);
    p = p * z + C(-1.4925650358406252e-05);
    p = p * z + C(0.00012055332981789664);
    p = p * z + C(-0.0008548327023450853);
    p = p * z + C(0.005223977625442188);
    p = p * z + C(-0.026866170645131252);
    p = p * z + C(0.11283791670955126);
    p = p * z + C(-0.37612638903183754);
    p = p * z + C(1.1283791670955126);
    return p * x;
}

/// e^-(x x) without the rounding of x x; x >= 0.
MATH V expMinusSquare(V x) {
    V c = p_min(x, C(28.0));
    V h = high(c);
    return exp(-(h * h)) * exp(-((c - h) * (c + h)));
}

MATH V erfc(V x) {
    V a = p_min(p_abs(x), C(28.0));
    V tail = expMinusSquare(a) * erfcx(a);
    V y = pick(x < C(-0.5), C(2.0) - tail, pick(x < C(0.5), C(1.0) - erfSmall(p_max(p_min(x, C(1.0)), C(-1.0))), tail));
    return pick(isnan(x), x, y);
}

MATH V erf(V x) {
    V a = p_min(p_abs(x), C(28.0));
    V y = pick(a < C(1.0), erfSmall(pick(a < C(1.0), x, C(0.0))), copysign(C(1.0) - expMinusSquare(a) * erfcx(a), x));
    return pick(isnan(x), x, y);
}

MATH V normalCdfTimes(V x, V factor) {
    V a = p_min(p_abs(x), C(39.0));
    V h = high(a);
    V rest = exp((a - h) * (a + h) * C(-0.5)) * erfcx(a * C(0.7071067811865476)) * C(0.5);
    V below = expTimes(h * h * C(-0.5), rest * factor);
    V middle = erfSmall(pick(a < C(1.0), x, C(0.0)) * C(0.7071067811865476)) * C(0.5) + C(0.5);
    V above = C(1.0) - expTimes(h * h * C(-0.5), rest);
    V y = pick(x < C(-0.5), below, pick(a < C(1.0), middle, above) * factor);
    // -inf times 0
    y = pick(x == -infinity(x), pick(p_abs(factor) < infinity(x), C(0.0), nanOf(x)), y);
    return pick(isnan(x), x, y);
}

/// Good to |x| = 1e6: the first two parts of pi / 2 have 33 bits. Beyond, the angle is taken modulo the f64 nearest 2
/// pi.
MATH V reduce(V angle, VKML_OUT(I) quadrant) {
    V x = pick(p_abs(angle) <= C(1e6), angle, fmod(angle, C(6.283185307179586)));
    V n = p_round(x * C(0.6366197723675814));
    quadrant = toI(n);
    V r = x - n * C(1.57079632673412561417e+00);
    r = r - n * C(6.07710050630396597660e-11);
    return r - n * C(2.02226624879595063154e-21);
}

/// fdlibm's kernels, with the quadrant's sign.
MATH V sinQuadrant(V r, I q) {
    V z = r * r;
    V s = C(1.58969099521155010221e-10);
    s = s * z + C(-2.50507602534068634195e-08);
    s = s * z + C(2.75573137070700676789e-06);
    s = s * z + C(-1.98412698298579493134e-04);
    s = s * z + C(8.33333333332248946124e-03);
    s = s * z + C(-1.66666666666666324348e-01);
    s = s * z * r + r;
    V c = C(-1.13596475577881948265e-11);
    c = c * z + C(2.08757232129817482790e-09);
    c = c * z + C(-2.75573143513906633035e-07);
    c = c * z + C(2.48015872894767294178e-05);
    c = c * z + C(-1.38888888888741095749e-03);
    c = c * z + C(4.16666666666666019037e-02);
    V half_ = z * C(0.5);
    V w = C(1.0) - half_;
    c = w + (((C(1.0) - w) - half_) + c * z * z);
    V y = pick((q & I(1)) == I(0), s, c);
    return pick((q & I(2)) == I(0), y, -y);
}

/// |x|^y for finite positive x: log x in two parts (the leading term of the series with its error), times y, then e to
/// it.
MATH V powPositive(V x, V y) {
    V e;
    M tiny = x < C(2.2250738585072014e-308);
    V f = mantissa(pick(tiny, x * C(18014398509481984.0), x), e);
    e = pick(tiny, e - C(54.0), e);
    // s = f / (2 + f) in two parts.
    V d = f + C(2.0);
    V dl = f - (d - C(2.0));
    V s = f / d;
    V sh = high(s);
    V dh = high(d);
    V sl = ((f - sh * dh) - sh * ((d - dh) + dl)) / d;
    // log = e ln2 + 2 s + s R, R small; ln2 in three parts, the first two exact in products with e.
    V rest = (sh + sl) * logSeries(s) + e * C(1.90821492927058770002e-10);
    V a = e * C(6.93147180369123816490e-01);
    V lead = a + sh * C(2.0);
    V err = (sh * C(2.0) - (lead - a)) + sl * C(2.0);
    V lh = high(lead + (err + rest));
    V ll = ((lead - lh) + err) + rest;
    V yc = p_min(p_max(y, C(-1e19)), C(1e19));
    V y1 = high(yc);
    V ph = y1 * lh;
    V pl = (yc - y1) * lh + yc * ll;
    V z = p_min(p_max(ph + pl, C(-760.0)), C(760.0));
    V n;
    V r = reduceExp(z, n);
    M inside = p_abs(ph + pl) < C(750.0);
    V low = pick(inside, pl + (ph - z), C(0.0));  // what the sum lost
    V q = expm1Reduced(r);
    return scale((q + (low + low * q)) + C(1.0), toI(n));
}

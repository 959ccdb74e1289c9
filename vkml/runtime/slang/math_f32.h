// Functions of f32, one source for Slang and for C++ (Highway): V is a float or a vector of them, M its
// comparisons, I its integers and IM theirs; MATH opens a function. Only IEEE + - * / fma, sqrt, selects and bit
// operations, so that every device stays within the same few ulp. Bounds are of the worst argument seen against
// float64; see tests/ops/test_elementwise.py.

/// 2^n for n in [-126, 127].
MATH V pow2(I n) { return asV((n + 127) << 23); }

/// The nearest integer to x, |x| < 2^22, as both: by 1.5 2^23, whose last bit is 1. Not by subtracting that again,
/// which a kernel compiled without precise would lose.
MATH V nearest(V x, VKML_OUT(I) k) {
    k = asI(x + 12582912.0f) - 0x4b400000;
    return toV(k);
}

/// Clears the low 12 bits, so that products of two results are exact.
MATH V high(V x) { return asV(asI(x) & I(~0xfff)); }

/// exp(r) - 1 for |r| <= ln2 / 2.
MATH V expm1Reduced(V r) {
    V p = p_fma(r, V(1.9875691500e-4f), V(1.3981999507e-3f));
    p = p_fma(p, r, V(8.3334519073e-3f));
    p = p_fma(p, r, V(4.1665795894e-2f));
    p = p_fma(p, r, V(1.6666665459e-1f));
    p = p_fma(p, r, V(5.0000001201e-1f));
    return p_fma(p, r * r, r);
}

/// x 2^n for n in [-252, 254], rounding once where the result is subnormal.
MATH V scale(V x, I n) {
    I half_ = n >> 1;
    return x * pow2(half_) * pow2(n - half_);
}

/// Splits x into n ln2 + r. The products with n are exact by their few bits, not by fma: a driver may take fmas apart
/// and then put n (lo - hi) together.
MATH V reduceExp(V x, VKML_OUT(V) n, VKML_OUT(I) k) {
    n = nearest(x * 1.44269504f, k);
    return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}

/// e^x times a factor of moderate size, rounding once where the result is subnormal.
MATH V expTimes(V x, V factor) {
    V n;
    I k;
    V r = reduceExp(p_min(p_max(x, V(-110.0f)), V(89.0f)), n, k);
    V y = scale((expm1Reduced(r) + 1.0f) * factor, k);
    // 0 times the factor, which a driver would fold.
    y = pick(x < V(-110.0f), pick(p_abs(factor) < infinity(x), V(0.0f), asV(I(0x7fc00000))), y);
    return pick(isnan(x), x, y);
}

/// e^x: 2 ulp.
MATH V exp(V x) { return expTimes(x, V(1.0f)); }

/// 2^x: 2 ulp.
MATH V exp2(V x) {
    V c = p_min(p_max(x, V(-150.0f)), V(129.0f));
    I k;
    V n = nearest(c, k);
    V y = scale(expm1Reduced((c - n) * 0.693147181f) + 1.0f, k);
    return pick(isnan(x), x, y);
}

/// e^x - 1, also for small x: 2 ulp.
MATH V expm1(V x) {
    V c = p_min(p_max(x, V(-20.0f)), V(89.0f));
    V n;
    I k;
    V r = reduceExp(c, n, k);
    V q = expm1Reduced(r);
    V t = pow2(k - 1);  // halved: 2^128 is no float
    V y = pick(n == V(0.0f), q, (p_fma(t, q, t - 0.5f)) * 2.0f);
    return pick(isnan(x), x, y);
}

/// x = m 2^e with m in [sqrt(1/2), sqrt 2): gives m - 1 and e. x is positive and normal.
MATH V mantissa(V x, VKML_OUT(V) e) {
    I u = asI(x) - 0x3f3504f3;
    e = toV(u >> 23);
    return asV((u & I(0x7fffff)) + 0x3f3504f3) - 1.0f;
}

/// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1).
MATH V logTail(V f) {
    V p = p_fma(f, V(7.0376836292e-2f), V(-1.1514610310e-1f));
    p = p_fma(p, f, V(1.1676998740e-1f));
    p = p_fma(p, f, V(-1.2420140846e-1f));
    p = p_fma(p, f, V(1.4249322787e-1f));
    p = p_fma(p, f, V(-1.6668057665e-1f));
    p = p_fma(p, f, V(2.0000714765e-1f));
    p = p_fma(p, f, V(-2.4999993993e-1f));
    p = p_fma(p, f, V(3.3333331174e-1f));
    V z = f * f;
    return p_fma(z, V(-0.5f), p * z * f);
}

/// What log and log2 give outside the positive normals: -inf at 0, NaN below, x itself at inf and NaN. By bits: a
/// device may take subnormals for 0.
MATH V logEdges(V x, V y) {
    I magnitude = asI(x) & I(0x7fffffff);
    y = pick(asI(x) < I(0), asV(I(0x7fc00000)), pick(asI(x) >= I(0x7f800000), x, y));
    return pick(magnitude == I(0), asV(I(int(0xff800000))), y);
}

/// Natural logarithm: 2 ulp.
MATH V log(V x) {
    M tiny = x < V(1.17549435e-38f);
    V e;
    V f = mantissa(pick(tiny, toV(asI(x)), x), e);  // a subnormal is its bits times 2^-149
    e = pick(tiny, e - 149.0f, e);
    V t = logTail(f);
    V y = e * 0.693359375f + (f + (t - e * 2.12194440e-4f));
    return logEdges(x, y);
}

/// Logarithm to base 2: 3 ulp, exact at powers of two.
MATH V log2(V x) {
    M tiny = x < V(1.17549435e-38f);
    V e;
    V f = mantissa(pick(tiny, toV(asI(x)), x), e);  // a subnormal is its bits times 2^-149
    e = pick(tiny, e - 149.0f, e);
    V t = logTail(f);
    V fh = high(f);
    V low = (f - fh) + t;
    // 1.44269504 = 1.4423828125 + 3.1222839e-4; the first has 12 bits.
    V y = p_fma(fh + low, V(3.1222839e-4f), low * 1.4423828125f) + fh * 1.4423828125f;
    return logEdges(x, e + y);
}

/// Hyperbolic tangent: 3 ulp.
MATH V tanh(V x) {
    V a = p_abs(x);
    V z = x * x;
    V p = p_fma(z, V(-5.70498872745e-3f), V(2.06390887954e-2f));
    p = p_fma(p, z, V(-5.37397155531e-2f));
    p = p_fma(p, z, V(1.33314422036e-1f));
    p = p_fma(p, z, V(-3.33332819422e-1f));
    V small = p_fma(p * z, x, x);
    V big = V(1.0f) - V(2.0f) / (exp(p_min(a, V(20.0f)) * 2.0f) + 1.0f);
    V y = pick(a < V(0.625f), small, copysign(big, x));
    return pick(isnan(x), x, y);
}

/// e^-(x x) without the rounding of x x; x >= 0.
MATH V expMinusSquare(V x) {
    V c = p_min(x, V(12.0f));
    V h = high(c);
    return exp(-(h * h)) * exp(-((c - h) * (c + h)));
}

/// e^(x x) erfc(x) for x in [0, 11]: a polynomial in u = 1 / (1 + x / 2), fitted to 2.5e-8.
MATH V erfcx(V x) {
    V u = V(1.0f) / p_fma(x, V(0.5f), V(1.0f));
    V p = p_fma(u, V(0.009436355903744698f), V(-0.1081952154636383f));
    p = p_fma(p, u, V(0.394592821598053f));
    p = p_fma(p, u, V(-0.625853955745697f));
    p = p_fma(p, u, V(0.38605666160583496f));
    p = p_fma(p, u, V(-0.08032667636871338f));
    p = p_fma(p, u, V(0.2196730524301529f));
    p = p_fma(p, u, V(0.23981989920139313f));
    p = p_fma(p, u, V(0.28272637724876404f));
    p = p_fma(p, u, V(0.2820706367492676f));
    return p * u;
}

/// erf(x) for |x| <= 1.
MATH V erfSmall(V x) {
    V z = x * x;
    V p = p_fma(z, V(7.853861353153693e-5f), V(-8.010193625184903e-4f));
    p = p_fma(p, z, V(5.188327685732524e-3f));
    p = p_fma(p, z, V(-2.685381193529856e-2f));
    p = p_fma(p, z, V(1.128358514861418e-1f));
    p = p_fma(p, z, V(-3.761262582423300e-1f));
    p = p_fma(p, z, V(1.128379165726710f));
    return p * x;
}

/// Complementary error function, its tail to relative accuracy: 8 ulp.
MATH V erfc(V x) {
    V a = p_min(p_abs(x), V(11.0f));
    V tail = expMinusSquare(a) * erfcx(a);
    V y = pick(x < V(-0.5f), V(2.0f) - tail,
               pick(x < V(0.5f), V(1.0f) - erfSmall(p_max(p_min(x, V(1.0f)), V(-1.0f))), tail));
    return pick(isnan(x), x, y);
}

/// Error function: 4 ulp.
MATH V erf(V x) {
    V a = p_min(p_abs(x), V(11.0f));
    V y =
        pick(a < V(1.0f), erfSmall(pick(a < V(1.0f), x, V(0.0f))), copysign(V(1.0f) - expMinusSquare(a) * erfcx(a), x));
    return pick(isnan(x), x, y);
}

/// factor erfc(-x / sqrt 2) / 2, the standard normal distribution below x: its tail to relative accuracy, 8 ulp.
MATH V normalCdfTimes(V x, V factor) {
    V a = p_min(p_abs(x), V(15.0f));
    // e^(-a a / 2) = 2^n e^r without the rounding of a a: h h is exact, the rest of the square joins the reduced
    // argument.
    V h = high(a);
    V n;
    I k;
    V r = reduceExp(h * h * -0.5f, n, k) + (a - h) * (a + h) * -0.5f;
    V rest = (expm1Reduced(r) + 1.0f) * erfcx(a * 0.707106781f) * 0.5f;
    V below = scale(rest * factor, k);
    // 0 times the factor, which a driver would fold.
    below = pick(x < V(-15.0f), pick(p_abs(factor) < infinity(x), V(0.0f), asV(I(0x7fc00000))), below);
    V above = V(1.0f) - rest * pow2(toI(p_max(n, V(-126.0f))));
    V middle = p_fma(erfSmall(pick(a < V(1.0f), x, V(0.0f)) * 0.707106781f), V(0.5f), V(0.5f));
    V y = pick(x < V(-0.5f), below, pick(a < V(1.0f), middle, above) * factor);
    return pick(isnan(x), x, y);
}

/// x - n pi / 2 for the nearest n, and n; |x| <= 5000. Products of n with the first three parts of pi / 2 are exact.
MATH V reduceAngle(V x, VKML_OUT(I) quadrant) {
    V n = nearest(x * 0.636619772f, quadrant);
    V r = x - n * 1.5703125f;
    r = r - n * 0.0004837512969970703f;
    r = r - n * 7.549533620476723e-08f;
    return r - n * 2.563344151594519e-12f;
}

/// sin of a reduced angle (even quadrants) or its cosine, with the quadrant's sign.
MATH V sinQuadrant(V r, I q) {
    V z = r * r;
    V s = p_fma(z, V(-1.9515295891e-4f), V(8.3321608736e-3f));
    s = p_fma(s, z, V(-1.6666654611e-1f));
    s = p_fma(s * z, r, r);
    V c = p_fma(z, V(2.443315711809948e-5f), V(-1.388731625493765e-3f));
    c = p_fma(c, z, V(4.166664568298827e-2f));
    c = p_fma(c, z * z, p_fma(z, V(-0.5f), V(1.0f)));
    V y = pick((q & I(1)) == I(0), s, c);
    return asV(asI(y) ^ ((q & I(2)) << 30));
}

/// |x|^y for finite positive x, after FreeBSD's e_powf.c: log2 in two floats, products kept exact by cutting factors to
/// 12 bits.
MATH V powPositive(V x, V y) {
    M tiny = x < V(1.17549435e-38f);
    I u = asI(pick(tiny, toV(asI(x)), x));
    I n = (u >> 23) - 127;
    I j = u & I(0x7fffff);
    IM up = j >= I(0x5db3d7);                     // from sqrt 3: take half of it
    IM middle = pick(up, I(0), j) > I(0x1cc471);  // between sqrt 1.5 and sqrt 3: relative to 1.5
    n = n + pick(up, I(1), I(0));
    V ax = asV((j | I(0x3f800000)) - pick(up, I(0x800000), I(0)));
    V bp = pick(middle, V(1.5f), V(1.0f));
    V t = toV(n) - pick(tiny, V(149.0f), V(0.0f));
    // s = (ax - bp) / (ax + bp) in two parts.
    V d = ax - bp;
    V v = V(1.0f) / (ax + bp);
    V s = d * v;
    V sh = high(s);
    V th = high(ax + bp);
    V tl = ax - (th - bp);
    V sl = v * ((d - sh * th) - sh * tl);
    // log(ax / bp) = 2 s (1 + s^2 / 3 + ...), then to base 2.
    V s2 = s * s;
    V p = p_fma(s2, V(2.0697501302e-01f), V(2.3066075146e-01f));
    p = p_fma(p, s2, V(2.7272811532e-01f));
    p = p_fma(p, s2, V(3.3333334327e-01f));
    p = p_fma(p, s2, V(4.2857143283e-01f));
    p = p_fma(p, s2, V(6.0000002384e-01f));
    V r = s2 * s2 * p + sl * (sh + s);
    s2 = sh * sh;
    th = high(V(3.0f) + s2 + r);
    tl = r - ((th - 3.0f) - s2);
    V a = sh * th;
    V b = sl * th + tl * s;
    V ph = high(a + b);
    V pl = b - (ph - a);
    V zh = ph * 9.6191406250e-01f;
    V dph = pick(middle, V(5.84960938e-01f), V(0.0f));
    V zl = ph * -1.1736857402e-04f + pl * 9.6179670095e-01f + pick(middle, V(1.56322085e-06f), V(0.0f));
    V t1 = high(((zh + zl) + dph) + t);
    V t2 = zl - (((t1 - t) - dph) - zh);
    // y log2 x in two parts, then 2 to it.
    V yc = p_min(p_max(y, V(-1.7179869e10f)), V(1.7179869e10f));
    V y1 = high(yc);
    pl = (yc - y1) * t1 + yc * t2;
    ph = y1 * t1;
    V z = pl + ph;
    V zc = p_min(p_max(z, V(-160.0f)), V(160.0f));
    I ki;
    V k = nearest(zc, ki);
    M inside = p_abs(z) < V(159.0f);
    ph = pick(inside, ph - k, V(0.0f));
    pl = pick(inside, pl, V(0.0f));
    V w = asV(asI(pl + ph) & I(~0x7fff));
    V main_ = w * 6.93145752e-01f;
    V rest = (pl - (w - ph)) * 6.9314718246e-01f + w * 1.42860654e-06f;
    V sum = main_ + rest;
    V low = rest - (sum - main_);
    V e = expm1Reduced(sum);
    return scale((e + (low + low * e)) + 1.0f, ki);
}

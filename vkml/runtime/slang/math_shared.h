// Functions of both float widths, put together from what math_f32.h and math_f64.h define. Bounds are those of f32.

/// log(1 + x), also for small x: 3 ulp.
MATH V log1p(V x) {
    V u = x + V(1.0f);
    V c = (x - (u - V(1.0f))) / u;  // what the sum lost
    V y = log(u);
    return pick(u == V(0.0f), y, pick(no(p_abs(u) < infinity(x)), y, pick(u == V(1.0f), x, y + c)));
}

/// 1 / (1 + e^-x): 4 ulp.
MATH V sigmoid(V x) {
    V t = exp(-p_abs(x));
    V y = pick(x < V(0.0f), t, V(1.0f)) / (t + V(1.0f));
    return pick(isnan(x), x, y);
}

/// log(1 + e^x) without overflow: 4 ulp.
MATH V softplus(V x) {
    V y = p_max(x, V(0.0f)) + log1p(exp(-p_abs(x)));
    return pick(isnan(x), x, y);
}

MATH V normalCdf(V x) { return normalCdfTimes(x, V(1.0f)); }

/// Sine and cosine: 2 ulp; large arguments take an exact reduction.
MATH V sin(V x) {
    I q;
    V r = reduce(x, q);
    return sinQuadrant(r, q);
}
MATH V cos(V x) {
    I q;
    V r = reduce(x, q);
    return sinQuadrant(r, q + I(1));
}
/// Tangent: 6 ulp.
MATH V tan(V x) {
    I q;
    V r = reduce(x, q);
    return sinQuadrant(r, q) / sinQuadrant(r, q + I(1));
}

/// x^y as IEEE 754 and torch: 2 ulp.
MATH V pow(V x, V y) {
    V inf = infinity(x);
    V nan = nanOf(x);
    V ax = p_abs(x);
    V ay = p_abs(y);
    M whole = p_trunc(y) == y;
    M odd = both(whole, p_trunc(y * V(0.5f)) * V(2.0f) != y);
    V r = powPositive(ax, y);
    r = pick(asI(ax) == I(0), pick(y < V(0.0f), inf, V(0.0f)), r);
    r = pick(ax == inf, pick(y < V(0.0f), V(0.0f), inf), r);
    r = pick(ay == inf,
             pick(ax == V(1.0f), V(1.0f),
                  pick(both(ax > V(1.0f), y > V(0.0f)), inf, pick(either(ax > V(1.0f), y > V(0.0f)), V(0.0f), inf))),
             r);
    r = pick(both(asI(x) < I(0), odd), -r, r);
    M impossible = both(both(x < V(0.0f), no(whole)), ax < inf);
    r = pick(impossible, nan, r);
    r = pick(isnan(x), x, r);
    r = pick(isnan(y), y, r);
    r = pick(y == V(0.0f), V(1.0f), r);
    return pick(x == V(1.0f), V(1.0f), r);
}

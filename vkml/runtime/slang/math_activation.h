// Activations, one source for Slang and for C++, built on the functions of math_f32.h or their f64 forms.

MATH V gelu(V x) { return normalCdfTimes(x, x); }

/// The hyperbolic-tangent form: x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
MATH V geluTanh(V x) {
    V u = x * (x * x * C(0.07135481627260024) + C(1.5957691216057308));
    return x * sigmoid(u);
}

/// x / (1 + e^-x)
MATH V silu(V x) {
    V t = exp(-p_abs(x));
    V d = x / (t + 1.0f);
    return pick(x < V(0.0f), expTimes(x, d), d);
}
MATH V logsigmoid(V x) { return -softplus(-x); }
/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2).
MATH V mish(V x) {
    V c = p_min(x, V(20.0f));
    V e = exp(c);
    V d = x * ((e + 2.0f) / (e * (e + 2.0f) + 2.0f));
    return pick(x > V(20.0f), x, expTimes(c, d));
}

// Their derivatives.
MATH V normalDensity(V x) { return exp(x * x * -0.5f) * C(0.3989422804014327); }
MATH V geluSlope(V x) { return normalCdf(x) + x * normalDensity(x); }
MATH V geluTanhSlope(V x) {
    V s = sigmoid(x * (x * x * C(0.07135481627260024) + C(1.5957691216057308)));
    V v = x * x * C(0.21406444881780072) + C(1.5957691216057308);
    // 0 times an overflowed v would be NaN where the slope is 0 or 1.
    V t = s * (V(1.0f) - s);
    return s + pick(t == V(0.0f), V(0.0f), x * t * v);
}
MATH V siluSlope(V x) {
    V s = sigmoid(x);
    return s * (x * (V(1.0f) - s) + 1.0f);
}
MATH V mishSlope(V x) {
    V t = tanh(softplus(x));
    return t + x * (V(1.0f) - t * t) * sigmoid(x);
}

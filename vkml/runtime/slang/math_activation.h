// Activations, one source for Slang and for C++, built on the functions of math_f32.h or their f64 forms.

MATH V gelu(V x)
{
    // From -14 on the result is below the smallest float; -inf times 0 must stay NaN.
    return x * normalCdf(x);
}

/// The hyperbolic-tangent form: x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
MATH V geluTanh(V x)
{
    V u = x * (x * x * C(0.07135481627260024) + C(1.5957691216057308));
    return x * sigmoid(u);
}

MATH V silu(V x) { return x * sigmoid(x); }
MATH V logsigmoid(V x) { return -softplus(-x); }
MATH V mish(V x)
{
    // tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2).
    V e = exp(p_min(x, V(20.0f)));
    V n = e * (e + 2.0f);
    return x * pick(x > V(20.0f), V(1.0f), n / (n + 2.0f));
}

// Their derivatives.
MATH V normalDensity(V x) { return exp(x * x * -0.5f) * C(0.3989422804014327); }
MATH V geluSlope(V x) { return normalCdf(x) + x * normalDensity(x); }
MATH V geluTanhSlope(V x)
{
    V s = sigmoid(x * (x * x * C(0.07135481627260024) + C(1.5957691216057308)));
    V v = x * x * C(0.21406444881780072) + C(1.5957691216057308);
    // 0 times an overflowed v would be NaN where the slope is 0 or 1.
    V t = s * (V(1.0f) - s);
    return s + pick(t == V(0.0f), V(0.0f), x * t * v);
}
MATH V siluSlope(V x)
{
    V s = sigmoid(x);
    return s * (x * (V(1.0f) - s) + 1.0f);
}
MATH V mishSlope(V x)
{
    V t = tanh(softplus(x));
    return t + x * (V(1.0f) - t * t) * sigmoid(x);
}

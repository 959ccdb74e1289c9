// Functions of both float widths, one source for Slang and for C++: see math_f32.h.

MATH V square(V x) { return x * x; }
MATH V reciprocal(V x) { return p_reciprocal(x); }
MATH V rsqrt(V x) { return V(1.0f) / p_sqrt(x); }
MATH V sqrt(V x) { return p_sqrt(x); }
MATH V abs(V x) { return p_abs(x); }
MATH V floor(V x) { return p_floor(x); }
MATH V ceil(V x) { return p_ceil(x); }
MATH V trunc(V x) { return p_trunc(x); }
/// To the nearest integer, ties to even.
MATH V round(V x) { return p_round(x); }
MATH M isinf(V x) { return p_abs(x) == infinity(x); }
MATH M isfinite(V x) { return p_abs(x) < infinity(x); }

/// The quotient rounded towards minus infinity, as Python and torch: from the exact remainder.
MATH V floor_divide(V a, V b) {
    V m = fmod(a, b);
    V d = (a - m) / b;
    d = pick(both(no(m == V(0.0f)), (b < V(0.0f)) != (m < V(0.0f))), d - 1.0f, d);
    V f = p_floor(d);
    f = pick(d - f > V(0.5f), f + 1.0f, f);
    return pick(b == V(0.0f), a / b, f);
}

/// The exact remainder with the sign of the divisor.
MATH V remainder(V a, V b) {
    V m = fmod(a, b);
    return pick(both(no(m == V(0.0f)), (b < V(0.0f)) != (m < V(0.0f))), m + b, m);
}

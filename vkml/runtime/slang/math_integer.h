// Functions of integers, one source for Slang and for C++: see math_f32.h. Divisors of 0 give 0; kernels report them.

MATH V square(V x) { return x * x; }
MATH M isnan(V x) { return no(x == x); }
MATH M isinf(V x) { return no(x == x); }
MATH M isfinite(V x) { return x == x; }
MATH V abs(V x) { return pick(x < V(0), V(0) - x, x); }
MATH V floor(V x) { return x; }
MATH V ceil(V x) { return x; }
MATH V trunc(V x) { return x; }
MATH V round(V x) { return x; }

/// The quotient rounded towards minus infinity; the type's least value over -1 wraps.
MATH V floor_divide(V a, V b) {
    V d = pick(either(b == V(0), b == V(-1)), V(1), b);
    V q = p_divide(a, d);
    V r = a - q * d;
    M down = both(no(r == V(0)), (r < V(0)) != (d < V(0)));
    q = pick(down, q - V(1), q);
    return pick(b == V(0), V(0), pick(b == V(-1), V(0) - a, q));
}

/// What floor_divide leaves: the sign of the divisor.
MATH V remainder(V a, V b) { return pick(b == V(0), V(0), a - floor_divide(a, b) * b); }

/// Wraps; a negative exponent gives 0 unless the base is 1 or -1.
MATH V pow(V x, V y) {
    V odd = pick((y & V(1)) == V(0), V(1), V(-1));
    V negative = pick(x == V(1), V(1), pick(x == V(-1), odd, V(0)));
    V n = p_max(y, V(0));
    V result = V(1);
    V base = x;
    for (int i = 0; i < 63; i++) {
        result = pick((n & V(1)) == V(0), result, result * base);
        base = base * base;
        n = n >> 1;
        if (!anyTrue(no(n == V(0)))) break;
    }
    return pick(y < V(0), negative, result);
}

// Functions of every number type, one source for Slang and for C++: see math_f32.h.

/// The larger, the smaller; a NaN on either side wins.
MATH V maximum(V a, V b) { return pick(isnan(a), a, pick(isnan(b), b, pick(a < b, b, a))); }
MATH V minimum(V a, V b) { return pick(isnan(a), a, pick(isnan(b), b, pick(b < a, b, a))); }

/// -1, 0 or 1; 0 at NaN.
MATH V sign(V x) { return pick(x > V(0), V(1), pick(x < V(0), V(-1), V(0))); }

/// x where it is above 0, else 0; NaN stays.
// Not left to a comparison alone: a driver was seen to turn it into a maximum that drops NaN.
MATH V relu(V x) { return pick(isnan(x), x, pick(x <= V(0), V(0), x)); }

/// x held between low and high; high where they cross; a NaN anywhere wins.
MATH V clamp(V x, V low, V high) { return minimum(maximum(x, low), high); }

/// Numbers of truth: what is not 0 (NaN included).
MATH M truth(V x) { return no(x == V(0)); }

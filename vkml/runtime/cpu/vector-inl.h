// Included once per Highway target, outside any namespace: a vector as a value with operators, and the functions of
// runtime/slang/math_*.h on it. `#pragma once` would keep it out of the second target.
#if defined(VKML_CPU_VECTOR_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_CPU_VECTOR_INL
#undef VKML_CPU_VECTOR_INL
#else
#define VKML_CPU_VECTOR_INL
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Mask {
    hn::Mask<hn::ScalableTag<T>> m;
};

/// A full vector of T.
template <class T>
struct Vec {
    using D = hn::ScalableTag<T>;
    using M = Mask<T>;
    hn::Vec<D> v;

    Vec() = default;
    HWY_INLINE explicit Vec(hn::Vec<D> raw) : v(raw) {}
    template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
    HWY_INLINE Vec(Number value) : v(hn::Set(D(), static_cast<T>(value))) {}

    static constexpr std::int64_t size() { return static_cast<std::int64_t>(hn::Lanes(D())); }
    static HWY_INLINE Vec load(const T* p) { return Vec(hn::LoadU(D(), p)); }
    HWY_INLINE void store(T* p) const { hn::StoreU(v, D(), p); }

    friend HWY_INLINE Vec operator+(Vec a, Vec b) { return Vec(hn::Add(a.v, b.v)); }
    friend HWY_INLINE Vec operator-(Vec a, Vec b) { return Vec(hn::Sub(a.v, b.v)); }
    friend HWY_INLINE Vec operator*(Vec a, Vec b) { return Vec(hn::Mul(a.v, b.v)); }
    friend HWY_INLINE Vec operator/(Vec a, Vec b) { return Vec(hn::Div(a.v, b.v)); }
    friend HWY_INLINE Vec operator&(Vec a, Vec b) { return Vec(hn::And(a.v, b.v)); }
    friend HWY_INLINE Vec operator|(Vec a, Vec b) { return Vec(hn::Or(a.v, b.v)); }
    friend HWY_INLINE Vec operator^(Vec a, Vec b) { return Vec(hn::Xor(a.v, b.v)); }
    friend HWY_INLINE Vec operator~(Vec a) { return Vec(hn::Not(a.v)); }
    friend HWY_INLINE Vec operator-(Vec a) { return Vec(hn::Neg(a.v)); }
    friend HWY_INLINE M operator==(Vec a, Vec b) { return {hn::Eq(a.v, b.v)}; }
    friend HWY_INLINE M operator!=(Vec a, Vec b) { return {hn::Not(hn::Eq(a.v, b.v))}; }
    friend HWY_INLINE M operator<(Vec a, Vec b) { return {hn::Lt(a.v, b.v)}; }
    friend HWY_INLINE M operator>(Vec a, Vec b) { return {hn::Gt(a.v, b.v)}; }
    friend HWY_INLINE M operator<=(Vec a, Vec b) {
        if constexpr (std::is_floating_point_v<T>)
            return {hn::Le(a.v, b.v)};
        else
            return {hn::Not(hn::Gt(a.v, b.v))};
    }
    friend HWY_INLINE M operator>=(Vec a, Vec b) { return b <= a; }
    friend HWY_INLINE Vec operator<<(Vec a, int n) { return Vec(hn::ShiftLeftSame(a.v, n)); }
    friend HWY_INLINE Vec operator>>(Vec a, int n) { return Vec(hn::ShiftRightSame(a.v, n)); }
};

template <class T>
HWY_INLINE Mask<T> operator!=(Mask<T> a, Mask<T> b) {
    return {hn::Xor(a.m, b.m)};
}
template <class T>
HWY_INLINE Mask<T> both(Mask<T> a, Mask<T> b) {
    return {hn::And(a.m, b.m)};
}
template <class T>
HWY_INLINE Mask<T> either(Mask<T> a, Mask<T> b) {
    return {hn::Or(a.m, b.m)};
}
template <class T>
HWY_INLINE Mask<T> no(Mask<T> a) {
    return {hn::Not(a.m)};
}
template <class T>
HWY_INLINE bool anyTrue(Mask<T> a) {
    return !hn::AllFalse(hn::ScalableTag<T>(), a.m);
}

using F32 = Vec<float>;
using F64 = Vec<double>;
using I32 = Vec<std::int32_t>;
using I64 = Vec<std::int64_t>;

#define VKML_VECTOR(V)                                                               \
    HWY_INLINE V pick(V::M m, V a, V b) { return V(hn::IfThenElse(m.m, a.v, b.v)); } \
    HWY_INLINE V p_min(V a, V b) { return pick(b < a, b, a); }                       \
    HWY_INLINE V p_max(V a, V b) { return pick(a < b, b, a); }
VKML_VECTOR(F32)
VKML_VECTOR(F64)
VKML_VECTOR(I32)
VKML_VECTOR(I64)
#undef VKML_VECTOR
/// A mask of one element size picks for the other type of that size.
HWY_INLINE F32 pick(I32::M m, F32 a, F32 b) { return F32(hn::IfThenElse(hn::RebindMask(F32::D(), m.m), a.v, b.v)); }
HWY_INLINE I32 pick(F32::M m, I32 a, I32 b) { return I32(hn::IfThenElse(hn::RebindMask(I32::D(), m.m), a.v, b.v)); }
HWY_INLINE F32::M asFloatMask(I32::M m) { return {hn::RebindMask(F32::D(), m.m)}; }
HWY_INLINE F32::M both(I32::M a, F32::M b) { return both(asFloatMask(a), b); }
HWY_INLINE F64::M asFloatMask(I64::M m) { return {hn::RebindMask(F64::D(), m.m)}; }

#define VKML_FLOAT(V, I, T)                                                                     \
    HWY_INLINE V p_abs(V a) { return V(hn::Abs(a.v)); }                                         \
    HWY_INLINE V p_sqrt(V a) { return V(hn::Sqrt(a.v)); }                                       \
    HWY_INLINE V p_reciprocal(V a) { return V(1.0f) / a; }                                      \
    HWY_INLINE V p_floor(V a) { return V(hn::Floor(a.v)); }                                     \
    HWY_INLINE V p_ceil(V a) { return V(hn::Ceil(a.v)); }                                       \
    HWY_INLINE V p_trunc(V a) { return V(hn::Trunc(a.v)); }                                     \
    HWY_INLINE V p_round(V a) { return V(hn::Round(a.v)); }                                     \
    HWY_INLINE V p_fma(V a, V b, V c) { return V(hn::MulAdd(a.v, b.v, c.v)); }                  \
    HWY_INLINE I asI(V a) { return I(hn::BitCast(I::D(), a.v)); }                               \
    HWY_INLINE V asV(I a) { return V(hn::BitCast(V::D(), a.v)); }                               \
    HWY_INLINE V infinity(V) { return V(hn::Inf(V::D())); }                                     \
    HWY_INLINE V copysign(V magnitude, V from) { return V(hn::CopySign(magnitude.v, from.v)); } \
    HWY_INLINE V::M isnan(V a) { return {hn::IsNaN(a.v)}; }
VKML_FLOAT(F32, I32, float)
VKML_FLOAT(F64, I64, double)
#undef VKML_FLOAT
HWY_INLINE F32 nanOf(F32) { return asV(I32(0x7fc00000)); }
HWY_INLINE I32 toI(F32 a) { return I32(hn::ConvertTo(I32::D(), a.v)); }
HWY_INLINE F32 toV(I32 a) { return F32(hn::ConvertTo(F32::D(), a.v)); }

/// Applies a scalar function lane by lane.
template <class T, class Function>
HWY_INLINE Vec<T> lanes(Vec<T> a, Function f) {
    HWY_ALIGN T x[hn::MaxLanes(hn::ScalableTag<T>())];
    a.store(x);
    for (std::int64_t i = 0; i < Vec<T>::size(); i++) x[i] = f(x[i]);
    return Vec<T>::load(x);
}
template <class T, class Function>
HWY_INLINE Vec<T> lanes(Vec<T> a, Vec<T> b, Function f) {
    HWY_ALIGN T x[hn::MaxLanes(hn::ScalableTag<T>())];
    HWY_ALIGN T y[hn::MaxLanes(hn::ScalableTag<T>())];
    a.store(x);
    b.store(y);
    for (std::int64_t i = 0; i < Vec<T>::size(); i++) x[i] = f(x[i], y[i]);
    return Vec<T>::load(x);
}
HWY_INLINE I32 p_divide(I32 a, I32 b) {
    // Exact: a quotient of 32-bit integers in f64 is never rounded across a whole number.
    return lanes(a, b, [](std::int32_t x, std::int32_t y) { return x / y; });
}
HWY_INLINE I64 p_divide(I64 a, I64 b) {
    return lanes(a, b, [](std::int64_t x, std::int64_t y) { return x / y; });
}

namespace math {
using HWY_NAMESPACE::isnan;

template <class T>
HWY_INLINE Vec<T> fmod(Vec<T> a, Vec<T> b) {
    return lanes(a, b, [](T x, T y) { return std::fmod(x, y); });
}

/// Angles up to 5000 by four parts of pi / 2, larger ones lane by lane.
HWY_INLINE F32 reduceAngle(F32 x, I32& quadrant);
HWY_INLINE F32 reduce(F32 x, I32& quadrant) {
    const F32::M large = no(p_abs(x) <= F32(5000.0f));
    F32 r = reduceAngle(x, quadrant);
    if (!anyTrue(large)) return r;
    HWY_ALIGN float angle[hn::MaxLanes(hn::ScalableTag<float>())];
    HWY_ALIGN std::int32_t turns[hn::MaxLanes(hn::ScalableTag<float>())];
    x.store(angle);
    for (std::int64_t i = 0; i < F32::size(); i++) {
        const double a = angle[i], s = std::sin(a), c = std::cos(a);
        // The quadrant whose axis is nearest, and the angle from there.
        turns[i] = std::abs(c) >= std::abs(s) ? (c > 0 ? 0 : 2) : (s > 0 ? 1 : 3);
        const double y = turns[i] == 0 ? s : turns[i] == 1 ? -c : turns[i] == 2 ? -s : c;
        angle[i] = static_cast<float>(std::asin(y));
    }
    quadrant = pick(large, I32::load(turns), quadrant);
    return pick(large, F32::load(angle), r);
}

#define MATH HWY_INLINE
#define VKML_OUT(T) T&
#define V F32
#define I I32
#define M Mask<float>
#define IM Mask<std::int32_t>
#define C(x) V(x##f)
#include "vkml/runtime/slang/math_all.h"
#undef V
#undef IM
#undef C
#undef I
#undef M

/// erfc(-x / sqrt 2) / 2, with what the rounding of the argument costs the tail put back.
HWY_INLINE double normal_cdf(double x) {
    constexpr double kHigh = 0.70710678118654757, kLow = -4.833646656726457e-17;  // 1 / sqrt 2
    const double t = -x * kHigh, rest = std::fma(-x, kHigh, -t) - x * kLow;
    const double tail = std::erfc(t);
    return std::isfinite(rest) ? 0.5 * (tail - 1.1283791670955126 * std::exp(-t * t) * rest) : 0.5 * tail;
}

#define V F64
#define M Mask<double>
#define C(x) V(x)
#define VKML_LANES(name, expression)                          \
    HWY_INLINE V name(V a) {                                  \
        return lanes(a, [](double x) { return expression; }); \
    }
VKML_LANES(exp, std::exp(x))
VKML_LANES(exp2, std::exp2(x))
VKML_LANES(expm1, std::expm1(x))
VKML_LANES(log, std::log(x))
VKML_LANES(log2, std::log2(x))
VKML_LANES(log1p, std::log1p(x))
VKML_LANES(tanh, std::tanh(x))
VKML_LANES(erf, std::erf(x))
VKML_LANES(erfc, std::erfc(x))
VKML_LANES(sin, std::sin(x))
VKML_LANES(cos, std::cos(x))
VKML_LANES(tan, std::tan(x))
VKML_LANES(sigmoid, 1 / (1 + std::exp(-x)))
VKML_LANES(normalCdf, normal_cdf(x))
VKML_LANES(softplus, x != x ? x : std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))))
#undef VKML_LANES
HWY_INLINE V expTimes(V a, V factor) { return exp(a) * factor; }
HWY_INLINE V normalCdfTimes(V a, V factor) { return normalCdf(a) * factor; }
HWY_INLINE V pow(V a, V b) {
    return lanes(a, b, [](double x, double y) { return std::pow(x, y); });
}
// In this order: each calls the ones before.
#include "vkml/runtime/slang/math_float.h"

#include "vkml/runtime/slang/math_common.h"

#include "vkml/runtime/slang/math_activation.h"
#undef V
#undef C
#undef M

#define V I32
#define M Mask<std::int32_t>
#include "vkml/runtime/slang/math_integer.h"

#include "vkml/runtime/slang/math_common.h"
#undef V
#undef M
#define V I64
#define M Mask<std::int64_t>
#include "vkml/runtime/slang/math_integer.h"

#include "vkml/runtime/slang/math_common.h"
#undef V
#undef M
#undef MATH
#undef VKML_OUT
}  // namespace math
}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#include "vkml/runtime/cpu/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/runtime/cpu/philox.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace vkml::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint32_t>;
using Longs = hn::Repartition<std::uint64_t, Words>;
using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<std::int32_t>;
using Word = hn::Vec<Words>;
using Float = hn::Vec<Floats>;

/// High and low words of a * b.
HWY_INLINE void multiply(Word a, Word b, Word& high, Word& low) {
    const Longs longs;
    const auto even = hn::MulEven(a, b);
    const auto odd = hn::MulEven(hn::BitCast(Words(), hn::ShiftRight<32>(hn::BitCast(longs, a))), b);
    high = hn::OddEven(hn::BitCast(Words(), odd), hn::BitCast(Words(), hn::ShiftRight<32>(even)));
    low = hn::OddEven(hn::BitCast(Words(), hn::ShiftLeft<32>(odd)), hn::BitCast(Words(), even));
}

/// Words 0 and 1 of the elements first, first + 1, ...; the low counter word does not carry among them.
HWY_INLINE void draw_words(Draw draw, std::uint64_t first, Word& w0, Word& w1) {
    const Words d;
    Word c0 = hn::Iota(d, static_cast<std::uint32_t>(first)), c1 = hn::Set(d, static_cast<std::uint32_t>(first >> 32));
    Word c2 = hn::Set(d, static_cast<std::uint32_t>(draw.offset)),
         c3 = hn::Set(d, static_cast<std::uint32_t>(draw.offset >> 32));
    auto k0 = static_cast<std::uint32_t>(draw.seed), k1 = static_cast<std::uint32_t>(draw.seed >> 32);
    for (int round = 0; round < 10; round++) {
        Word p_high, p_low, q_high, q_low;
        multiply(c0, hn::Set(d, 0xD2511F53u), p_high, p_low);
        multiply(c2, hn::Set(d, 0xCD9E8D57u), q_high, q_low);
        c0 = hn::Xor(hn::Xor(q_high, c1), hn::Set(d, k0));
        c1 = q_low;
        c2 = hn::Xor(hn::Xor(p_high, c3), hn::Set(d, k1));
        c3 = p_low;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    w0 = c0;
    w1 = c1;
}

/// Calls emit(i, w0, w1, count) for each vector of elements; a partial or carrying one goes through memory.
template <class Emit>
HWY_INLINE void for_each_vector(Draw draw, std::uint64_t first, std::int64_t n, const Emit& emit) {
    const Words d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = 0; i < n; i += lanes) {
        const std::uint64_t at = first + static_cast<std::uint64_t>(i);
        Word w0, w1;
        if (static_cast<std::uint32_t>(at) <= UINT32_MAX - static_cast<std::uint32_t>(lanes)) {
            draw_words(draw, at, w0, w1);
        } else {
            HWY_ALIGN std::uint32_t word0[HWY_MAX_BYTES / 4], word1[HWY_MAX_BYTES / 4];
            for (std::int64_t k = 0; k < lanes; k++) {
                const PhiloxWords w = philox(draw, at + static_cast<std::uint64_t>(k));
                word0[k] = w[0];
                word1[k] = w[1];
            }
            w0 = hn::Load(d, word0);
            w1 = hn::Load(d, word1);
        }
        emit(i, w0, w1, std::min(lanes, n - i));
    }
}

template <class D, class V, class T>
HWY_INLINE void store_some(D d, V v, T* out, std::int64_t count) {
    if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, out);
    HWY_ALIGN T all[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, all);
    std::copy_n(all, count, out);
}

void words(Draw draw, std::uint64_t first, std::int64_t n, std::uint32_t* out) {
    for_each_vector(draw, first, n, [&](std::int64_t i, Word w0, Word, std::int64_t count) {
        store_some(Words(), w0, out + i, count);
    });
}

HWY_INLINE Float constant(float value) { return hn::Set(Floats(), value); }
HWY_INLINE Float plus(Float a, Float b) { return hn::Add(a, b); }
HWY_INLINE Float times(Float a, Float b) { return hn::Mul(a, b); }
HWY_INLINE Float to_float(Word w) { return hn::ConvertTo(Floats(), hn::BitCast(Ints(), w)); }

/// log(u) for normal u in (0, 1], to about an ulp. Products and sums are rounded apart, as in random.slang.
HWY_INLINE Float log_unit(Float u) {
    const Words d;
    const auto bits = hn::Sub(hn::BitCast(d, u), hn::Set(d, 0x3f3504f3u));
    const Float exponent = hn::ConvertTo(Floats(), hn::ShiftRight<23>(hn::BitCast(Ints(), bits)));
    const auto significand = hn::Add(hn::And(bits, hn::Set(d, 0x7fffffu)), hn::Set(d, 0x3f3504f3u));
    const Float f = hn::Sub(hn::BitCast(Floats(), significand), constant(1.0f));
    const Float s = hn::Div(f, plus(constant(2.0f), f)), z = times(s, s);
    Float series = plus(constant(0.14285715f), times(z, constant(0.11111111f)));
    series = plus(constant(0.2f), times(z, series));
    series = times(z, plus(constant(0.33333334f), times(z, series)));
    const Float twice = times(constant(2.0f), s);
    return plus(twice, plus(times(twice, series), times(exponent, constant(0.69314718f))));
}

/// cos(2 pi v) for v in [0, 1).
HWY_INLINE Float cos_turn(Float v) {
    const Ints d;
    const Float quarters = times(v, constant(4.0f));
    const auto quadrant = hn::ConvertTo(d, plus(quarters, constant(0.5f)));
    const Float x = times(hn::Sub(quarters, hn::ConvertTo(Floats(), quadrant)), constant(1.57079637f)), z = times(x, x);
    Float c = plus(constant(-0.0013888889f), times(z, constant(2.4801588e-5f)));
    c = plus(constant(0.041666668f), times(z, c));
    c = plus(constant(1.0f), times(z, plus(constant(-0.5f), times(z, c))));
    Float s = plus(constant(-0.00019841270f), times(z, constant(2.7557319e-6f)));
    s = plus(constant(0.008333334f), times(z, s));
    s = times(x, plus(constant(1.0f), times(z, plus(constant(-0.16666667f), times(z, s)))));
    const auto odd = hn::RebindMask(Floats(), hn::Ne(hn::And(quadrant, hn::Set(d, 1)), hn::Zero(d)));
    const auto next = hn::And(hn::Add(quadrant, hn::Set(d, 1)), hn::Set(d, 2));
    const Float r = hn::IfThenElse(odd, s, c);
    return hn::IfThenElse(hn::RebindMask(Floats(), hn::Ne(next, hn::Zero(d))), hn::Neg(r), r);
}

void normal(Draw draw, std::uint64_t first, std::int64_t n, float* out) {
    for_each_vector(draw, first, n, [&](std::int64_t i, Word w0, Word w1, std::int64_t count) {
        const Float u = times(to_float(hn::Add(hn::ShiftRight<8>(w0), hn::Set(Words(), 1))), constant(0x1p-24f));
        const Float v = times(to_float(hn::ShiftRight<8>(w1)), constant(0x1p-24f));
        const Float radius = hn::Sqrt(times(constant(-2.0f), log_unit(u)));
        store_some(Floats(), times(radius, cos_turn(v)), out + i, count);
    });
}

}  // namespace vkml::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml::cpu {

HWY_EXPORT(words);
HWY_EXPORT(normal);

void philox_words(Draw draw, std::uint64_t first, std::int64_t n, std::uint32_t* word0) {
    HWY_DYNAMIC_DISPATCH(words)(draw, first, n, word0);
}

void philox_normal(Draw draw, std::uint64_t first, std::int64_t n, float* out) {
    HWY_DYNAMIC_DISPATCH(normal)(draw, first, n, out);
}

}  // namespace vkml::cpu
#endif

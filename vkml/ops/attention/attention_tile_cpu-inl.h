// Included once per Highway target by the CPU forms of attention: small matrix products, and a call's extents.
#if defined(VKML_OPS_ATTENTION_TILE_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_OPS_ATTENTION_TILE_CPU_INL_H_
#undef VKML_OPS_ATTENTION_TILE_CPU_INL_H_
#else
#define VKML_OPS_ATTENTION_TILE_CPU_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "vkml/ops/attention/attention_kernel.h"
#include "vkml/runtime/cpu/exp-inl.h"
#include "vkml/runtime/cpu/philox.h"
#include "vkml/runtime/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::attention::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace ::vkml::HWY_NAMESPACE;

inline constexpr std::int64_t kKeys = 64;  // columns of a tile of scores
inline constexpr std::int64_t kPad = 16;   // widths in buffers are multiples of this

#if HWY_TARGET <= HWY_AVX3
inline constexpr int kMostVectors = 4;  // with 6 rows 24 sums, of 32 registers
#else
inline constexpr int kMostVectors = 2;
#endif
inline constexpr int kMostRows = 6;

/// A row-major matrix operand whose element (i, j) is p[i * row + j * column].
template <class R>
struct Left {
    const R* p;
    std::int64_t row, column;
};

template <int kRows, int kVectors, class R>
HWY_INLINE void product_block(R* c, std::int64_t ldc, Left<R> a, const R* b, std::int64_t ldb, std::int64_t k,
                              bool add) {
    const hn::ScalableTag<R> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> acc[kRows][kVectors];
    for (int i = 0; i < kRows; i++)
        for (int v = 0; v < kVectors; v++) acc[i][v] = add ? hn::LoadU(d, c + i * ldc + v * lanes) : hn::Zero(d);
    for (std::int64_t j = 0; j < k; j++) {
        hn::Vec<decltype(d)> row[kVectors];
        for (int v = 0; v < kVectors; v++) row[v] = hn::LoadU(d, b + j * ldb + v * lanes);
        for (int i = 0; i < kRows; i++) {
            const auto x = hn::Set(d, a.p[i * a.row + j * a.column]);
            for (int v = 0; v < kVectors; v++) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
        }
    }
    for (int i = 0; i < kRows; i++)
        for (int v = 0; v < kVectors; v++) hn::StoreU(acc[i][v], d, c + i * ldc + v * lanes);
}

template <int kVectors, class R>
void product_columns(R* c, std::int64_t ldc, Left<R> a, const R* b, std::int64_t ldb, std::int64_t rows, std::int64_t k,
                     bool add) {
    const auto step = [&](auto count) {
        product_block<decltype(count)::value, kVectors>(c, ldc, a, b, ldb, k, add);
        c += count * ldc, a.p += count * a.row, rows -= count;
    };
    while (rows >= kMostRows) step(std::integral_constant<int, kMostRows>{});
    while (rows >= 2) step(std::integral_constant<int, 2>{});
    if (rows == 1) step(std::integral_constant<int, 1>{});
}

/// c (rows x n) = a b, or c += a b, each element summed over k in order whatever the rows beside it; n is a multiple of
/// kPad.
template <class R>
void product(R* c, std::int64_t ldc, Left<R> a, const R* b, std::int64_t ldb, std::int64_t rows, std::int64_t n,
             std::int64_t k, bool add) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<R>()));
    std::int64_t j = 0;
    const auto step = [&](auto vectors) {
        product_columns<decltype(vectors)::value>(c + j, ldc, a, b + j, ldb, rows, k, add);
        j += vectors * lanes;
    };
    while (j + kMostVectors * lanes <= n) step(std::integral_constant<int, kMostVectors>{});
    while (j + 2 * lanes <= n) step(std::integral_constant<int, 2>{});
    while (j < n) step(std::integral_constant<int, 1>{});
}

inline std::int64_t padded(std::int64_t width) { return (width + kPad - 1) / kPad * kPad; }

/// The extents and strides of a call, from either argument struct.
struct Extents {
    template <class Args>
    Extents(const Args& a, const Spec& spec)
        : E(spec[kE]),
          Ev(spec[kEv]),
          L(a.L),
          S(a.S),
          H(a.H),
          G(spec[kGroup]),
          rows(G * L),
          batches(a.batches),
          ep(padded(E)),
          vp(padded(Ev)),
          causal(spec[kCausal] != 0),
          threshold(spec[kThreshold]),
          scale(std::bit_cast<double>(static_cast<std::uint64_t>(spec[kScaleHigh]) << 32 | spec[kScaleLow])),
          drop_scale(std::bit_cast<float>(spec[kDropScale])) {}
    std::int64_t E, Ev, L, S, H, G, rows, batches, ep, vp;
    bool causal;
    std::uint32_t threshold;
    double scale;
    float drop_scale;

    /// Keys that rows up to `last` (a flat row of the same tile as `first`) may see.
    std::int64_t keys_seen(std::int64_t first, std::int64_t last) const {
        if (!causal) return S;
        return std::min(S, first / L == last / L ? last % L + 1 : L);
    }
};

/// One (b, h): where its tensors begin, and what stands at its scores.
template <class E, class Args>
struct Batch {
    using R = typename E::Value;
    using Stored = typename E::Stored;
    Batch(const Args& a, const Spec& spec, const Extents& x, std::int64_t index)
        : a(a),
          spec(spec),
          x(x),
          index(index),
          b(static_cast<std::uint64_t>(index / x.H)),
          h(static_cast<std::uint64_t>(index % x.H)) {}
    const Args& a;
    const Spec& spec;
    const Extents& x;
    std::int64_t index;
    std::uint64_t b, h;

    std::uint64_t head(std::int64_t r) const {
        return h * static_cast<std::uint64_t>(x.G) + static_cast<std::uint64_t>(r / x.L);
    }
    const Stored* query(std::int64_t r) const {
        return reinterpret_cast<const Stored*>(a.query) + b * a.q_b + head(r) * a.q_h +
               static_cast<std::uint64_t>(r % x.L) * spec[kQueryRow];
    }
    const Stored* key(std::int64_t j) const {
        return reinterpret_cast<const Stored*>(a.key) + b * a.k_b + h * a.k_h +
               static_cast<std::uint64_t>(j) * spec[kKeyRow];
    }
    const Stored* value(std::int64_t j) const {
        return reinterpret_cast<const Stored*>(a.value) + b * a.v_b + h * a.v_h +
               static_cast<std::uint64_t>(j) * spec[kValueRow];
    }

    /// Scales a row of products, adds the mask; blocked ones and those from `n` to kKeys become -inf. Returns the
    /// largest.
    R score(R* s, std::int64_t r, std::int64_t j0, std::int64_t n) const {
        constexpr R kBlocked = -std::numeric_limits<R>::infinity();
        const hn::ScalableTag<R> d;
        const std::int64_t i = r % x.L;
        if (x.causal) n = std::clamp<std::int64_t>(i + 1 - j0, 0, n);
        const auto factor = hn::Set(d, static_cast<R>(x.scale));
        for (std::int64_t j = 0; j < kKeys; j += static_cast<std::int64_t>(hn::Lanes(d)))
            hn::StoreU(hn::Mul(hn::LoadU(d, s + j), factor), d, s + j);
        if (spec[kMask] != kNoMask) add_mask(s, i, r, j0, n);
        std::fill(s + n, s + kKeys, kBlocked);
        auto peak = hn::Set(d, kBlocked);
        for (std::int64_t j = 0; j < kKeys; j += static_cast<std::int64_t>(hn::Lanes(d)))
            peak = hn::Max(peak, hn::LoadU(d, s + j));
        return hn::GetLane(hn::MaxOfLanes(d, peak));
    }

    void add_mask(R* s, std::int64_t i, std::int64_t r, std::int64_t j0, std::int64_t n) const {
        const std::uint64_t step = spec[kMaskColumn], at = b * a.m_b + head(r) * a.m_h +
                                                           static_cast<std::uint64_t>(i) * a.m_row +
                                                           static_cast<std::uint64_t>(j0) * step;
        if (spec[kMask] == kBoolMask) {
            const auto* m = reinterpret_cast<const std::uint8_t*>(a.mask) + at;
            for (std::int64_t j = 0; j < n; j++)
                s[j] = m[static_cast<std::uint64_t>(j) * step] ? s[j] : -std::numeric_limits<R>::infinity();
            return;
        }
        HWY_ALIGN R added[kKeys];
        if (spec[kMask] == kFloatMask) {
            const auto* m = reinterpret_cast<const float*>(a.mask) + at;
            for (std::int64_t j = 0; j < n; j++) added[j] = static_cast<R>(m[static_cast<std::uint64_t>(j) * step]);
        } else {
            load_run<E>(reinterpret_cast<const Stored*>(a.mask) + at, static_cast<std::int64_t>(step), n, added);
        }
        for (std::int64_t j = 0; j < n; j++) s[j] += added[j];
    }

    /// Factors of the dropout at n columns of a row.
    void keep(std::int64_t r, std::int64_t j0, std::int64_t n, R* factor) const {
        std::uint32_t words[kKeys];
        cpu::philox_words({a.seed, 0}, static_cast<std::uint64_t>((index * x.rows + r) * x.S + j0), n, words);
        for (std::int64_t j = 0; j < n; j++)
            factor[j] = (words[j] >> 8) >= x.threshold ? static_cast<R>(x.drop_scale) : R(0);
        std::fill(factor + n, factor + kKeys, R(0));
    }
};

/// Rows as values, `width` of `ld` columns long and 0 behind; at(i) gives the i-th.
template <class E, class At>
void pack_rows(const At& at, std::int64_t rows, std::int64_t width, std::int64_t ld, typename E::Value* out) {
    for (std::int64_t i = 0; i < rows; i++) {
        load_run<E>(at(i), 1, width, out + i * ld);
        std::fill(out + i * ld + width, out + (i + 1) * ld, typename E::Value(0));
    }
}

/// The transpose of `rows` packed rows: [width][kKeys], 0 behind the rows there are.
template <class R>
void transpose_tile(const R* in, std::int64_t ld, std::int64_t rows, std::int64_t width, R* out) {
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t j0 = 0; j0 < kKeys; j0 += kBlock)
        for (std::int64_t e = 0; e < width; e++) {
            R* to = out + e * kKeys + j0;
            const std::int64_t n = std::clamp<std::int64_t>(rows - j0, 0, kBlock);
            for (std::int64_t j = 0; j < n; j++) to[j] = in[(j0 + j) * ld + e];
            std::fill(to + n, to + kBlock, R(0));
        }
}

}  // namespace vkml::attention::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

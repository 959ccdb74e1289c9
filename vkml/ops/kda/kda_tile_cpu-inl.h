// Included once per Highway target by the CPU forms of the KDA kernels: small matrix products, and the decay factors of
// a tile.
#if defined(VKML_OPS_KDA_TILE_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_OPS_KDA_TILE_CPU_INL_H_
#undef VKML_OPS_KDA_TILE_CPU_INL_H_
#else
#define VKML_OPS_KDA_TILE_CPU_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "hwy/highway.h"
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_kernel.h"
#include "vkml/runtime/cpu/exp-inl.h"
#include "vkml/runtime/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::kda::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace ::vkml::HWY_NAMESPACE;

/// c (m x n) += sign * a b, summed over k in order. a's element (i, j) is a[i * ai + j * aj]; n is a multiple of 16.
template <int kRows, int kVectors, bool kMinus, class R>
HWY_INLINE void product_block(R* c, std::int64_t ldc, const R* a, std::int64_t ai, std::int64_t aj, const R* b,
                              std::int64_t ldb, std::int64_t k) {
    const hn::ScalableTag<R> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> acc[kRows][kVectors];
    for (int i = 0; i < kRows; i++)
        for (int v = 0; v < kVectors; v++) acc[i][v] = hn::LoadU(d, c + i * ldc + v * lanes);
    for (std::int64_t j = 0; j < k; j++) {
        hn::Vec<decltype(d)> row[kVectors];
        for (int v = 0; v < kVectors; v++) row[v] = hn::LoadU(d, b + j * ldb + v * lanes);
        for (int i = 0; i < kRows; i++) {
            const auto x = hn::Set(d, a[i * ai + j * aj]);
            for (int v = 0; v < kVectors; v++)
                acc[i][v] = kMinus ? hn::NegMulAdd(x, row[v], acc[i][v]) : hn::MulAdd(x, row[v], acc[i][v]);
        }
    }
    for (int i = 0; i < kRows; i++)
        for (int v = 0; v < kVectors; v++) hn::StoreU(acc[i][v], d, c + i * ldc + v * lanes);
}

template <int kVectors, bool kMinus, class R>
HWY_INLINE void product_columns(R* c, std::int64_t ldc, const R* a, std::int64_t ai, std::int64_t aj, const R* b,
                                std::int64_t ldb, int m, std::int64_t k) {
    int i = 0;
    for (; i + 4 <= m; i += 4) product_block<4, kVectors, kMinus>(c + i * ldc, ldc, a + i * ai, ai, aj, b, ldb, k);
    for (; i < m; i++) product_block<1, kVectors, kMinus>(c + i * ldc, ldc, a + i * ai, ai, aj, b, ldb, k);
}

template <bool kMinus = false, class R>
void product(R* c, std::int64_t ldc, const R* a, std::int64_t ai, std::int64_t aj, const R* b, std::int64_t ldb,
             std::int64_t rows, std::int64_t n, std::int64_t k) {
    const int m = static_cast<int>(rows);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<R>()));
    std::int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) product_columns<2, kMinus>(c + j, ldc, a, ai, aj, b + j, ldb, m, k);
    for (; j < n; j += lanes) product_columns<1, kMinus>(c + j, ldc, a, ai, aj, b + j, ldb, m, k);
}

/// c += lower b for 64 rows: row i sums over j <= i only, so that nothing later than i can reach it, be it NaN.
template <class R>
void lower_product(R* c, std::int64_t ldc, const R* lower, const R* b, std::int64_t ldb, std::int64_t n, int block) {
    const std::int64_t first = block * 16;
    product(c, ldc, lower + first * 64, 64, 1, b, ldb, 16, n, first);
    for (std::int64_t i = 0; i < 16; i++)
        product(c + i * ldc, ldc, lower + (first + i) * 64 + first, 64, 1, b + first * ldb, ldb, 1, n, i + 1);
}

template <class R>
R dot(const R* x, const R* y, std::int64_t n) {
    const hn::ScalableTag<R> d;
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(hn::Lanes(d)))
        sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
    return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// A log decay so low that exp gives 0, in place of -inf.
template <class R>
inline constexpr R kLowestDecay = sizeof(R) == 4 ? R(-128) : R(-1024);

/// state (rows x n) times exp(x[row]). Near 1 by expm1: the factor's rounding would compound over the tiles
/// (kda.md 5.2).
template <class R>
void fade(R* state, std::int64_t ld, const R* x, std::int64_t rows, std::int64_t n) {
    const hn::ScalableTag<R> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t i = 0; i < rows; i++) {
        const bool near = std::abs(x[i]) < R(0.693);
        const auto factor = hn::Set(d, near ? std::expm1(x[i]) : std::exp(x[i]));
        for (std::int64_t j = 0; j < n; j += lanes) {
            const auto s = hn::LoadU(d, state + i * ld + j);
            hn::StoreU(near ? hn::MulAdd(s, factor, s) : hn::Mul(s, factor), d, state + i * ld + j);
        }
    }
}

/// The extents of a call and where the workspace keeps things.
struct Extents {
    std::int64_t K, V, H, HV, tiles, kp, vp, group;
    bool keep;
    double scale;
    KdaSlot slot;
};
inline Extents extents_of(const Spec& spec) {
    Extents e{spec[kK],         spec[kV], spec[kH], spec[kHV], spec[kTiles], 0, 0, spec[kHV] / spec[kH],
              spec[kKeep] != 0, 1,        {}};
    const std::int64_t pad = spec[kPad];
    e.kp = (e.K + pad - 1) / pad * pad;
    e.vp = (e.V + pad - 1) / pad * pad;
    e.scale = std::bit_cast<double>(static_cast<std::uint64_t>(spec[kScaleHigh]) << 32 | spec[kScaleLow]);
    e.slot = kdaSlot(static_cast<std::uint32_t>(e.kp), static_cast<std::uint32_t>(e.vp), e.keep, e.group > 1);
    return e;
}

/// 64 rows of `width` elements as values, `padded` long; missing rows and columns are 0.
template <class E>
void load_rows(Address base, std::uint64_t offset, std::uint64_t row_stride, std::uint32_t step, std::int64_t rows,
               std::int64_t width, std::int64_t padded, typename E::Value* out) {
    using R = typename E::Value;
    const auto* p = reinterpret_cast<const typename E::Stored*>(base) + offset;
    std::fill(out, out + 64 * padded, R(0));
    for (std::int64_t i = 0; i < rows; i++)
        load_run<E>(p + static_cast<std::uint64_t>(i) * row_stride, step, width, out + i * padded);
}

template <class R>
void clamp_decay(R* g, std::int64_t n) {
    for (std::int64_t i = 0; i < n; i++) g[i] = g[i] < kLowestDecay<R> ? kLowestDecay<R> : g[i];
}

/// The element type of the f32 or f64 tensors beside one of type E.
template <class E>
using WideOf = std::conditional_t<std::is_same_v<E, ElementF64>, ElementF64, ElementF32>;

/// Decay products of a tile without a positive exponent (kda.md 5.1), all [64][kp] but z and gs.
template <class R>
struct Factors {
    explicit Factors(std::int64_t kp) : kp(kp), memory(static_cast<std::size_t>(64 * kp * 9 + 5 * kp)) {
        R* at = memory.data();
        for (R** array : {&q, &k, &g, &a, &p, &e, &qp, &kp_, &ke}) *array = at, at += 64 * kp;
        z = at, gs = z + 4 * kp;
    }
    std::int64_t kp;
    std::vector<R> memory;
    R *q, *k, *g;      // inputs
    R* a;              // exp(g)
    R *p, *e;          // decay since the start of the row's 16-row block, and to its end
    R *qp, *kp_, *ke;  // q p, k p, k e
    R *z, *gs;         // decay of each block [4][kp]; sum of g over the tile

    /// From q, k, g.
    void compute() {
        const hn::ScalableTag<R> d;
        for (std::int64_t c = 0; c < kp; c += static_cast<std::int64_t>(hn::Lanes(d))) {
            auto total = hn::Zero(d);
            for (std::int64_t block = 0; block < 4; block++) total = hn::Add(total, compute_block(block, c));
            hn::StoreU(total, d, gs + c);
        }
    }

  private:
    hn::Vec<hn::ScalableTag<R>> compute_block(std::int64_t block, std::int64_t c) {
        const hn::ScalableTag<R> d;
        auto sum = hn::Zero(d);
        for (std::int64_t i = block * 16; i < block * 16 + 16; i++) {
            const auto x = hn::LoadU(d, g + i * kp + c);
            sum = hn::Add(sum, x);
            const auto since = exp_of(d, sum);
            hn::StoreU(since, d, p + i * kp + c);
            hn::StoreU(exp_of(d, x), d, a + i * kp + c);
            hn::StoreU(hn::Mul(hn::LoadU(d, k + i * kp + c), since), d, kp_ + i * kp + c);
            hn::StoreU(hn::Mul(hn::LoadU(d, q + i * kp + c), since), d, qp + i * kp + c);
            if (i == block * 16 + 15) hn::StoreU(since, d, z + block * kp + c);
        }
        auto after = hn::Zero(d);
        for (std::int64_t i = block * 16 + 15; i >= block * 16; i--) {
            const auto until = exp_of(d, after);
            hn::StoreU(until, d, e + i * kp + c);
            hn::StoreU(hn::Mul(hn::LoadU(d, k + i * kp + c), until), d, ke + i * kp + c);
            after = hn::Add(after, hn::LoadU(d, g + i * kp + c));
        }
        return sum;
    }
};

/// The decay between the end of block `to` and the start of block `from` > to: product of z over the blocks between.
template <class R>
void decay_between(const Factors<R>& f, std::int64_t from, std::int64_t to, R* out) {
    std::fill(out, out + f.kp, R(1));
    for (std::int64_t m = to + 1; m < from; m++)
        for (std::int64_t c = 0; c < f.kp; c++) out[c] *= f.z[m * f.kp + c];
}

}  // namespace vkml::kda::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

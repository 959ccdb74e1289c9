#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

#include "vkml/core/error.h"
#include "vkml/core/float16.h"
#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/matmul/gemm_blocked_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef VKML_GEMM_BLOCKED_ONCE
#define VKML_GEMM_BLOCKED_ONCE
namespace vkml {

/// One tile of one matrix: rows of A and columns of B from an origin, summed into `tile` (kTileM x kTileN, packed).
struct BlockedTile {
    const void *a, *b;
    std::int64_t a_row, a_col, b_row, b_col;
    std::int64_t rows, columns, k;
};
inline constexpr std::int64_t kTileM = 96, kTileN = 256, kTileK = 256, kChain = 64;

template <class T>
struct Element {
    using Value = T;
    static T load(T x) { return x; }
    static T store(T x) { return x; }
};
struct Half {
    std::uint16_t bits;
};
struct Bfloat {
    std::uint16_t bits;
};
template <>
struct Element<Half> {
    using Value = float;
    /// As float_from_f16, without a branch: the exponent is moved by a multiplication, which is exact for subnormals
    /// too.
    static float load(Half x) {
        const std::uint32_t magnitude = (x.bits & 0x7fffu) << 13, sign = static_cast<std::uint32_t>(x.bits & 0x8000u)
                                                                         << 16;
        const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
        return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite));
    }
    static Half store(float x) { return {f16_from_float(x)}; }
};
template <>
struct Element<Bfloat> {
    using Value = float;
    static float load(Bfloat x) { return float_from_bf16(x.bits); }
    static Bfloat store(float x) { return {bf16_from_float(x)}; }
};

}  // namespace vkml
#endif

HWY_BEFORE_NAMESPACE();
namespace vkml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two vectors of columns, and as many rows as registers allow beside them.
#if HWY_TARGET == HWY_AVX3
constexpr std::int64_t kRows = 12;
#else
constexpr std::int64_t kRows = 6;
#endif

/// c (kRows x two vectors, kTileN apart) += a (k x kRows) b (k x two vectors), in chains of kChain from zero.
template <class V>
HWY_ATTR void micro_kernel(const V* HWY_RESTRICT a, const V* HWY_RESTRICT b, V* HWY_RESTRICT c, std::int64_t k) {
    const hn::ScalableTag<V> d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t from = 0; from < k; from += kChain) {
        const std::int64_t steps = std::min(kChain, k - from);
        hn::Vec<decltype(d)> sum[kRows][2];
        for (auto& row : sum) row[0] = row[1] = hn::Zero(d);
        for (std::int64_t i = 0; i < steps; i++, a += kRows, b += 2 * lanes) {
            const auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
#pragma GCC unroll 12
            for (std::int64_t r = 0; r < kRows; r++) {
                const auto x = hn::Set(d, a[r]);
                sum[r][0] = hn::MulAdd(x, b0, sum[r][0]);
                sum[r][1] = hn::MulAdd(x, b1, sum[r][1]);
            }
        }
#pragma GCC unroll 12
        for (std::int64_t r = 0; r < kRows; r++) {
            V* row = c + r * kTileN;
            hn::StoreU(hn::Add(hn::LoadU(d, row), sum[r][0]), d, row);
            hn::StoreU(hn::Add(hn::LoadU(d, row + lanes), sum[r][1]), d, row + lanes);
        }
    }
}

/// Panels of `width` rows or columns, k-major inside, filled up with zeros.
template <class T, class V>
HWY_ATTR void pack(const T* from, std::int64_t across, std::int64_t along, std::int64_t count, std::int64_t k,
                   std::int64_t width, V* HWY_RESTRICT to) {
    for (std::int64_t panel = 0; panel < count; panel += width) {
        const std::int64_t n = std::min(width, count - panel);
        for (std::int64_t i = 0; i < k; i++, to += width) {
            const T* source = from + panel * across + i * along;
            if (across == 1)
                for (std::int64_t j = 0; j < n; j++) to[j] = Element<T>::load(source[j]);
            else
                for (std::int64_t j = 0; j < n; j++) to[j] = Element<T>::load(source[j * across]);
            for (std::int64_t j = n; j < width; j++) to[j] = V{0};
        }
    }
}

template <class T>
HWY_ATTR void tile_product(const BlockedTile& t, typename Element<T>::Value* tile, typename Element<T>::Value* packed_a,
                           typename Element<T>::Value* packed_b) {
    using V = typename Element<T>::Value;
    const std::int64_t width = 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<V>()));
    const std::int64_t padded = (t.rows + kRows - 1) / kRows * kRows;
    std::fill(tile, tile + padded * kTileN, V{0});
    for (std::int64_t k = 0; k < t.k; k += kTileK) {
        const std::int64_t depth = std::min(kTileK, t.k - k);
        pack(static_cast<const T*>(t.a) + k * t.a_col, t.a_row, t.a_col, t.rows, depth, kRows, packed_a);
        pack(static_cast<const T*>(t.b) + k * t.b_row, t.b_col, t.b_row, t.columns, depth, width, packed_b);
        for (std::int64_t n = 0; n < t.columns; n += width)
            for (std::int64_t m = 0; m < t.rows; m += kRows)
                micro_kernel(packed_a + m * depth, packed_b + n * depth, tile + m * kTileN + n, depth);
    }
}

HWY_ATTR void tile_f32(const BlockedTile& t, float* tile, float* a, float* b) { tile_product<float>(t, tile, a, b); }
HWY_ATTR void tile_f64(const BlockedTile& t, double* tile, double* a, double* b) {
    tile_product<double>(t, tile, a, b);
}
HWY_ATTR void tile_f16(const BlockedTile& t, float* tile, float* a, float* b) { tile_product<Half>(t, tile, a, b); }
HWY_ATTR void tile_bf16(const BlockedTile& t, float* tile, float* a, float* b) { tile_product<Bfloat>(t, tile, a, b); }

}  // namespace HWY_NAMESPACE
}  // namespace vkml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {

HWY_EXPORT(tile_f32);
HWY_EXPORT(tile_f64);
HWY_EXPORT(tile_f16);
HWY_EXPORT(tile_bf16);

/// Every tile starts at zero and runs over all of K, so the sums depend neither on the tile nor on the threads.
template <class T, class Run>
void blocked(const GemmArgs& args, const Run& run) {
    using V = typename Element<T>::Value;
    const auto* a = reinterpret_cast<const T*>(args.a);
    const auto* b = reinterpret_cast<const T*>(args.b);
    const auto* bias = reinterpret_cast<const T*>(args.bias);
    auto* c = reinterpret_cast<T*>(args.c);
    const std::int64_t m = args.m, n = args.n;
    const std::int64_t down = (m + kTileM - 1) / kTileM, across = (n + kTileN - 1) / kTileN;
    const std::int64_t work = std::min(m, kTileM) * std::min(n, kTileN) * std::max<std::int64_t>(1, args.k);
    const auto body = [&](std::int64_t begin, std::int64_t end) {
        // Kept by the thread: a small product must not pay for a megabyte.
        constexpr std::size_t kFloats = (kTileM + 12) * kTileN + (kTileM + 12) * kTileK + (kTileN + 32) * kTileK;
        thread_local const std::unique_ptr<V[], decltype(&std::free)> memory(
            static_cast<V*>(std::aligned_alloc(64, (kFloats * sizeof(V) + 63) / 64 * 64)), &std::free);
        check<OutOfMemoryError>(memory != nullptr, "matmul: expected memory for a tile, got none");
        V* tile = memory.get();
        V* packed_b = tile + (kTileM + 12) * kTileN;
        V* packed_a = packed_b + (kTileN + 32) * kTileK;
        for (std::int64_t task = begin; task < end; task++) {
            const std::int64_t batch = task / (down * across), row = task / across % down * kTileM,
                               column = task % across * kTileN;
            const std::int64_t outer = batch / args.batch_inner, inner = batch % args.batch_inner;
            const BlockedTile t{.a = a + outer * args.a_outer + inner * args.a_inner + row * args.a_row,
                                .b = b + outer * args.b_outer + inner * args.b_inner + column * args.b_col,
                                .a_row = args.a_row,
                                .a_col = args.a_col,
                                .b_row = args.b_row,
                                .b_col = args.b_col,
                                .rows = std::min(kTileM, m - row),
                                .columns = std::min(kTileN, n - column),
                                .k = args.k};
            run(t, tile, packed_a, packed_b);
            for (std::int64_t i = 0; i < t.rows; i++) {
                T* to = c + (batch * m + row + i) * n + column;
                const V* from = tile + i * kTileN;
                for (std::int64_t j = 0; j < t.columns; j++)
                    to[j] = Element<T>::store(bias ? from[j] + Element<T>::load(bias[(column + j)]) : from[j]);
            }
        }
    };
    cpu::parallel_for(args.batch * down * across, std::max<std::int64_t>(1, 8 * cpu::kGrain / work), body);
}

}  // namespace

void gemm_blocked_cpu(const GemmArgs& args, DType dtype) {
    switch (dtype) {
        case DType::f64:
            return blocked<double>(args, [f = HWY_DYNAMIC_DISPATCH(tile_f64)](auto&&... x) { f(x...); });
        case DType::f16:
            return blocked<Half>(args, [f = HWY_DYNAMIC_DISPATCH(tile_f16)](auto&&... x) { f(x...); });
        case DType::bf16:
            return blocked<Bfloat>(args, [f = HWY_DYNAMIC_DISPATCH(tile_bf16)](auto&&... x) { f(x...); });
        default:
            return blocked<float>(args, [f = HWY_DYNAMIC_DISPATCH(tile_f32)](auto&&... x) { f(x...); });
    }
}

}  // namespace vkml
#endif

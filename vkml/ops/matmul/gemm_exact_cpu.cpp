#include <algorithm>
#include <vector>

#include "vkml/core/float16.h"
#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/matmul/gemm_exact_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef VKML_GEMM_EXACT_ONCE
#define VKML_GEMM_EXACT_ONCE
namespace vkml {
inline constexpr std::int64_t kExactBlock = 32, kExactRows = 16, kExactColumns = 64, kExactLevels = 27;
inline constexpr std::int64_t kExactTile = kExactRows * kExactColumns;
}  // namespace vkml
#endif

HWY_BEFORE_NAMESPACE();
namespace vkml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// sums (rows x kExactColumns) = a (rows x kExactBlock) b (depth x kExactColumns): one chain per output, product and
/// sum each rounded.
HWY_ATTR void block_sums(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT sums,
                         std::int64_t rows, std::int64_t depth) {
    const hn::ScalableTag<float> d;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t m = 0; m < rows; m += 4) {
        for (std::int64_t n = 0; n < kExactColumns; n += lanes) {
            auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
            const float* row = a + m * kExactBlock;
            for (std::int64_t k = 0; k < depth; k++) {
                const auto x = hn::LoadU(d, b + k * kExactColumns + n);
                s0 = hn::Add(s0, hn::Mul(hn::Set(d, row[k]), x));
                s1 = hn::Add(s1, hn::Mul(hn::Set(d, row[k + kExactBlock]), x));
                s2 = hn::Add(s2, hn::Mul(hn::Set(d, row[k + 2 * kExactBlock]), x));
                s3 = hn::Add(s3, hn::Mul(hn::Set(d, row[k + 3 * kExactBlock]), x));
            }
            float* to = sums + m * kExactColumns + n;
            hn::StoreU(s0, d, to);
            hn::StoreU(s1, d, to + kExactColumns);
            hn::StoreU(s2, d, to + 2 * kExactColumns);
            hn::StoreU(s3, d, to + 3 * kExactColumns);
        }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace vkml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {

HWY_EXPORT(block_sums);

float widen(DType dtype, Address base, std::int64_t index) {
    if (dtype == DType::f32) return reinterpret_cast<const float*>(base)[index];
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(base)[index];
    return dtype == DType::f16 ? float_from_f16(bits) : float_from_bf16(bits);
}

void narrow(DType dtype, Address base, std::int64_t index, float value) {
    if (dtype == DType::f32)
        reinterpret_cast<float*>(base)[index] = value;
    else
        reinterpret_cast<std::uint16_t*>(base)[index] =
            dtype == DType::f16 ? f16_from_float(value) : bf16_from_float(value);
}

struct ExactTile {
    std::int64_t a, b, rows, columns;  // element offsets of the origin, and the extents
    std::vector<float> panel_a = std::vector<float>(kExactRows * kExactBlock);
    std::vector<float> panel_b = std::vector<float>(kExactBlock * kExactColumns);
    std::vector<float> sums = std::vector<float>(kExactTile);
    std::vector<float> stack = std::vector<float>(kExactLevels * kExactTile);
};

void add_into(float* sums, const float* left) {
    for (std::int64_t i = 0; i < kExactTile; i++) sums[i] = left[i] + sums[i];
}

/// Leaves the tile's sums in t.sums. The carry stack adds block sums in adjacent pairs; at the end an odd one moves up
/// unchanged.
void exact_tile(const GemmArgs& args, DType dtype, ExactTile& t) {
    const auto run = HWY_DYNAMIC_DISPATCH(block_sums);
    std::uint64_t blocks = 0;
    for (std::int64_t k = 0; k < args.k; k += kExactBlock, blocks++) {
        const std::int64_t depth = std::min<std::int64_t>(kExactBlock, args.k - k);
        for (std::int64_t i = 0; i < t.rows; i++)
            for (std::int64_t j = 0; j < depth; j++)
                t.panel_a[static_cast<std::size_t>(i * kExactBlock + j)] =
                    widen(dtype, args.a, t.a + i * args.a_row + (k + j) * args.a_col);
        for (std::int64_t i = 0; i < depth; i++)
            for (std::int64_t j = 0; j < t.columns; j++)
                t.panel_b[static_cast<std::size_t>(i * kExactColumns + j)] =
                    widen(dtype, args.b, t.b + (k + i) * args.b_row + j * args.b_col);
        run(t.panel_a.data(), t.panel_b.data(), t.sums.data(), t.rows, depth);
        std::int64_t level = 0;
        for (; (blocks >> level) & 1; level++) add_into(t.sums.data(), t.stack.data() + level * kExactTile);
        std::copy(t.sums.begin(), t.sums.end(), t.stack.begin() + level * kExactTile);
    }
    std::fill(t.sums.begin(), t.sums.end(), 0.0f);
    bool first = true;
    for (std::int64_t level = 0; level < kExactLevels; level++) {
        if (!((blocks >> level) & 1)) continue;
        const float* left = t.stack.data() + level * kExactTile;
        if (first)
            std::copy(left, left + kExactTile, t.sums.begin());
        else
            add_into(t.sums.data(), left);
        first = false;
    }
}

}  // namespace

void gemm_exact_cpu(const GemmArgs& args, DType dtype) {
    const std::int64_t m = args.m, n = args.n;
    const std::int64_t down = (m + kExactRows - 1) / kExactRows, across = (n + kExactColumns - 1) / kExactColumns;
    const std::int64_t work = std::min(m, kExactRows) * std::min(n, kExactColumns) * std::max<std::int64_t>(1, args.k);
    cpu::parallel_for(args.batch * down * across, std::max<std::int64_t>(1, cpu::kGrain / work),
                      [&](std::int64_t begin, std::int64_t end) {
                          ExactTile t{};
                          for (std::int64_t task = begin; task < end; task++) {
                              const std::int64_t batch = task / (down * across),
                                                 row = task / across % down * kExactRows;
                              const std::int64_t column = task % across * kExactColumns;
                              const std::int64_t outer = batch / args.batch_inner, inner = batch % args.batch_inner;
                              t.a = outer * args.a_outer + inner * args.a_inner + row * args.a_row;
                              t.b = outer * args.b_outer + inner * args.b_inner + column * args.b_col;
                              t.rows = std::min(kExactRows, m - row);
                              t.columns = std::min(kExactColumns, n - column);
                              exact_tile(args, dtype, t);
                              for (std::int64_t i = 0; i < t.rows; i++)
                                  for (std::int64_t j = 0; j < t.columns; j++) {
                                      float sum = t.sums[static_cast<std::size_t>(i * kExactColumns + j)];
                                      if (args.bias) sum += widen(dtype, args.bias, (column + j));
                                      narrow(dtype, args.c, (batch * m + row + i) * n + column + j, sum);
                                  }
                          }
                      });
}

}  // namespace vkml
#endif

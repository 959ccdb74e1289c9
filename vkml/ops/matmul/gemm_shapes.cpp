#include <algorithm>
#include <cmath>

#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/runtime/grid.h"

/// What a pipeline's tile is, which operands it needs copied, and how long its chains of terms are.
namespace vkml {

Tile tile_of(Pipeline pipeline) {
    switch (pipeline) {
        case Pipeline::large:
        case Pipeline::split_k_large:
            return {128, 256, 16, 256, 16 * (132 + 260) * 4};
        case Pipeline::medium:
        case Pipeline::split_k_medium:
            return {64, 128, 16, 128, 2 * 16 * (68 + 132) * 4};
        case Pipeline::coopmat_large:
            return {192, 128, 64, 256, (192 + 128) * 9 * 16};
        case Pipeline::coopmat_wide:
            return {128, 256, 48, 256, (128 * 7 + 48 * 33) * 16};
        case Pipeline::coopmat:
        case Pipeline::split_k_coopmat:
            return {128, 128, 32, 128, 2 * 128 * 5 * 16};
        case Pipeline::coopmat_small:
            return {128, 64, 64, 256, (128 + 64) * 9 * 16};
        case Pipeline::split_k_coopmat_small:
            return {64, 64, 128, 128, (64 + 64) * 17 * 16};
        case Pipeline::high:
            return {128, 128, 32, 256, 2 * 128 * 9 * 16};
        case Pipeline::high_small:
            return {64, 64, 32, 128, 2 * 64 * 9 * 16};
        case Pipeline::parts:
            return {64, 128, 16, 128, (64 + 128) * 7 * 16 + 16};
        case Pipeline::parts_small:
            return {64, 64, 32, 128, 2 * (64 + 64) * 7 * 16 + 16};
        case Pipeline::parts_tiny:
            return {32, 32, 64, 128, (32 * 25 + 64 * 13) * 16 + 16};
        case Pipeline::parts_few:
            return {16, 16, 16, 256, 8 * (16 * 7 * 2 + 2 * 64) * 16 + 16};
        default:
            return {64, 64, 16, 64, 16 * (68 + 68) * 4};
    }
}

bool is_split(Pipeline pipeline) {
    return pipeline == Pipeline::split_k || pipeline == Pipeline::split_k_large ||
           pipeline == Pipeline::split_k_medium || pipeline == Pipeline::split_k_small ||
           pipeline == Pipeline::split_k_coopmat || pipeline == Pipeline::split_k_coopmat_small;
}

bool is_cooperative(Pipeline pipeline) { return pipeline >= Pipeline::coopmat && pipeline <= Pipeline::high_small; }

bool is_parts(Pipeline pipeline) { return pipeline >= Pipeline::parts; }

namespace {

/// When the last unit ends, in times of a wide tile: `wide` of these first, then `large` of those, each unit taking the
/// next one.
double end_of(std::int64_t wide, std::int64_t large, std::int64_t units) {
    constexpr double kLarge = 0.76;  // of a wide tile's time, measured on an H200 at 8192 terms
    const std::int64_t late = wide % units, early = units - late;
    double next_early = static_cast<double>(wide / units), next_late = next_early + 1,
           end = late > 0 ? next_late : next_early;
    while (large > 0) {
        const bool is_early = late == 0 || next_early <= next_late;
        double& next = is_early ? next_early : next_late;
        large -= is_early ? early : late;
        next += kLarge;
        end = std::max(end, next);
    }
    return end;
}

}  // namespace

WideRows wide_rows(std::int64_t m, std::int64_t n, std::uint32_t units) {
    constexpr std::int64_t kMostBands = 8;
    const Tile wide = tile_of(Pipeline::coopmat_wide), large = tile_of(Pipeline::coopmat_large);
    const auto across = ceil_div(n, wide.n), others = ceil_div(n, large.n);
    const auto end = [&](std::int64_t rows, std::int64_t bands) {
        return end_of(static_cast<std::int64_t>(ceil_div(rows, wide.m) * across),
                      static_cast<std::int64_t>(bands * others), units);
    };
    if (units == 0) return {static_cast<std::uint32_t>(m), 0};
    WideRows best{static_cast<std::uint32_t>(m), end(m, 0)};
    for (std::int64_t bands = 1; bands <= kMostBands && bands * large.m < m; bands++) {
        const std::int64_t left = m - bands * large.m;
        if (left % wide.m != 0) continue;
        const double now = end(left, bands);
        if (now < 0.99 * best.end) best = {static_cast<std::uint32_t>(left), now};
    }
    return best;
}

Packs packs(const GemmProblem& p, Pipeline pipeline) {
    const Tile tile = tile_of(pipeline);
    const std::int64_t slices = pipeline == Pipeline::coopmat_wide ? 8 : tile.k;  // that K must be made of
    const bool all = p.k % slices != 0 || (p.dtype == DType::f32 && is_cooperative(pipeline));
    const bool any = pipeline == Pipeline::split_k_coopmat_small;  // of fewer lines than a tile
    Packs result{all || !p.a_aligned || (p.m < tile.m && !any), all || !p.b_aligned || (p.n < tile.n && !any)};
    // No kernel has the first operand packed along its rows and the second along K.
    if (!p.a_along && (p.b_along || result.b)) result.a = true;
    return result;
}

std::uint32_t gemm_chain(const GemmProblem& p) {
    if (p.precision == Precision::exact) return 32;
    // Adding C equal terms one after another loses up to 0.375 C units of 2^-24 of the sum (most where it ends a third
    // into a binade), adding the chains one unit each; allowed are 2 (K / 32 + log2 K + 32). Not above 1408: split K
    // takes chains as its parts.
    constexpr std::int64_t kLongest = 1408;
    const auto terms = static_cast<double>(std::max<std::int64_t>(p.k, 1));
    const double allowed = 2 * (terms / 32 + std::log2(terms) + 32);
    for (std::int64_t count = std::max<std::int64_t>((p.k + kLongest - 1) / kLongest, 1);; count++) {
        const std::int64_t chain = std::max<std::int64_t>((p.k + 32 * count - 1) / (32 * count) * 32, 32);
        if (chain == 32 || 0.375 * static_cast<double>(chain) + static_cast<double>(count - 1) <= allowed)
            return static_cast<std::uint32_t>(chain);
    }
}

}  // namespace vkml

#include "vkml/ops/conv2d/conv2d_tile.spv.h"

#include <algorithm>

#include "vkml/ops/conv2d/conv2d_choice.h"
#include "vkml/ops/conv2d/conv2d_launch.h"
#include "vkml/ops/conv2d/conv2d_weight_tile.spv.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

/// The implicit product on the FMA units.
namespace vkml::conv {
namespace {

constexpr Kernel small_kernel{"conv2d_tile", spv::conv2d_tile};
constexpr Kernel wide_kernel{"conv2d_tile", spv::conv2d_wide};
constexpr Kernel square_kernel{"conv2d_tile", spv::conv2d_square};
constexpr Kernel weight_kernel{"conv2d_weight_tile", spv::conv2d_weight_tile};

struct Tile {
    const Kernel* kernel;
    std::int64_t m, n;
};

/// Large tiles where they are filled well and are enough to give every unit of the device one.
Tile choose_tile(const Pass& p, std::int64_t pixels, const Limits& limits) {
    constexpr Tile kTiles[] = {{&small_kernel, 64, 64}, {&wide_kernel, 64, 256}, {&square_kernel, 128, 128}};
    const TileSize wanted = p.image.dtype() == DType::f32 ? wanted_tile() : TileSize::small;
    if (wanted != TileSize::any) return kTiles[static_cast<int>(wanted) - 1];
    const Tile& tile = p.outputs % 128 == 0 || p.outputs > 192 ? kTiles[2] : kTiles[1];
    const auto count = [&](const Tile& t) {
        return p.groups * static_cast<std::int64_t>(
                              ceil_div(static_cast<std::uint64_t>(p.outputs), static_cast<std::uint64_t>(t.m)) *
                              ceil_div(static_cast<std::uint64_t>(pixels), static_cast<std::uint64_t>(t.n)));
    };
    const std::int64_t units = limits.compute_units ? limits.compute_units : 16;
    return p.outputs >= 48 && count(tile) >= units ? tile : kTiles[0];
}

}  // namespace

void run_tile(const Pass& p) {
    if (p.y.count * p.x.count == 0) return;
    Stream& on = stream_of(p.out);
    const std::int64_t span = round_up(p.channels, 4), terms = round_up(span * p.y.taps * p.x.taps, 8);
    const Tensor weight = pack_weights(p, span, p.outputs, terms, false);
    const Tensor bias = p.bias.defined() ? contiguous(p.bias) : p.bias;
    Pass packed = p;
    packed.bias = bias;
    const std::int64_t step = samples_of(p);
    for (std::int64_t n = 0; n < p.image.size(0); n += step) {
        ConvArgs args = pass_arguments(packed, n, std::min(step, p.image.size(0) - n));
        args.weight = weight.address();
        const Tile tile = choose_tile(p, args.pixels, on.limits());
        const bool vectors = p.image.dtype() == DType::f32 && stores_vectors(p, 4);
        const std::uint64_t groups =
            ceil_div(static_cast<std::uint64_t>(p.outputs), static_cast<std::uint64_t>(tile.m)) *
            ceil_div(args.pixels, static_cast<std::uint64_t>(tile.n)) * args.groups;
        on.launch(*tile.kernel, p.image.dtype(), Spec{vectors, p.channels % 4 == 0}, linear_grid(groups), args,
                  {p.image, weight, bias}, {p.out});
    }
}

void tile_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& s) {
    constexpr std::int64_t kTileM = 64, kTileN = 128;
    Stream& on = stream_of(out);
    const Tensor g = contiguous(grad);
    const std::int64_t lines = round_up(s.outputs_each(), kTileM), span = s.channels_each(),
                       columns = round_up(span * s.taps(), kTileN),
                       tiles = lines / kTileM * (columns / kTileN) * s.groups;
    const PartialSums sums = plan_partial_sums(g, input, s, lines, columns, tiles, 1024);
    ConvWeightArgs args{};
    for (const PartialSums::Slice& slice : sums.slices) {
        args = sums.arguments(g, input, s, slice);
        on.launch(weight_kernel, g.dtype(), {}, linear_grid(static_cast<std::uint64_t>(slice.parts * tiles)), args,
                  {g, input}, {sums.partial});
    }
    reduce_weight_gradient(sums, out, s, span);
}

}  // namespace vkml::conv

#include "vkml/ops/conv2d/conv2d_direct.spv.h"

#include <algorithm>

#include "vkml/ops/conv2d/conv2d_launch.h"
#include "vkml/ops/conv2d/conv2d_weight_direct.spv.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

/// Groups of few channels, without tiles.
namespace vkml::conv {
namespace {

constexpr Kernel forward_kernel{"conv2d_direct", spv::conv2d_direct};
constexpr Kernel weight_kernel{"conv2d_weight_direct", spv::conv2d_weight_direct};

constexpr std::int64_t kWide = 4, kMostColumns = 7, kRows = 3;

std::int64_t fours(std::int64_t v) { return (v + kWide - 1) / kWide; }

}  // namespace

void run_direct(const Pass& p) {
    if (p.y.count * p.x.count == 0) return;
    Stream& on = stream_of(p.out);
    const std::int64_t terms = p.channels * p.y.taps * p.x.taps;
    const Tensor weight = pack_weights(p, std::max<std::int64_t>(p.channels, 1), p.outputs, terms, false);
    // A position is four of the line here.
    Pass wide = p;
    wide.x.count = fours(p.x.count);
    const bool window = p.x.in_step == 1 && std::abs(p.x.tap_step) == 1 && p.x.taps <= kMostColumns && terms > 0;
    const bool vectors = stores_vectors(p, kWide) && p.x.count % kWide == 0;
    const Spec spec{vectors, window ? u32(p.x.taps) : 0u, p.x.tap_step > 0};
    const std::int64_t step = samples_of(p);
    for (std::int64_t n = 0; n < p.image.size(0); n += step) {
        const std::int64_t samples = std::min(step, p.image.size(0) - n);
        ConvArgs args = pass_arguments(wide, n, samples * p.groups * p.outputs);
        args.weight = weight.address();
        args.columns = u32(p.x.count);
        on.launch(forward_kernel, p.image.dtype(), spec, linear_grid(ceil_div(args.pixels, kThreads)), args,
                  {p.image, weight, p.bias}, {p.out});
    }
}

void direct_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& s) {
    const Window& w = s.window;
    Stream& on = stream_of(out);
    const Tensor g = contiguous(grad);
    Sizes wide = s;
    wide.out.w = fours(s.out.w);
    const std::int64_t columns = std::min(w.kernel.w, kMostColumns);
    const std::int64_t blocks = (w.kernel.w + columns - 1) / columns * ((w.kernel.h + kRows - 1) / kRows);
    const std::int64_t tiles = s.outputs * s.channels_each() * blocks;
    const PartialSums sums = plan_partial_sums(g, input, wide, s.outputs_each(), s.channels_each() * s.taps(), tiles, 16384);
    const Spec spec{u32(columns), w.stride.w == 1 && w.dilation.w == 1};
    for (const PartialSums::Slice& slice : sums.slices) {
        const ConvWeightArgs args = sums.arguments(g, input, wide, slice);
        on.launch(weight_kernel, g.dtype(), spec, linear_grid(static_cast<std::uint64_t>(slice.parts * tiles)), args, {g, input},
                  {sums.partial});
    }
    reduce_weight_gradient(sums, out, s, s.channels_each());
}

}  // namespace vkml::conv

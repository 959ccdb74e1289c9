#include "vkml/ops/conv2d/conv2d_coopmat.spv.h"

#include <algorithm>

#include "vkml/ops/conv2d/conv2d_launch.h"
#include "vkml/ops/conv2d/conv2d_weight_coopmat.spv.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

/// The implicit product on cooperative matrices.
namespace vkml::conv {
namespace {

constexpr Kernel kernel_128{"conv2d_coopmat", spv::conv2d_coopmat_128};
constexpr Kernel kernel_64{"conv2d_coopmat", spv::conv2d_coopmat_64};
constexpr Kernel weight_128{"conv2d_weight_coopmat", spv::conv2d_weight_coopmat_128};
constexpr Kernel weight_64{"conv2d_weight_coopmat", spv::conv2d_weight_coopmat_64};

constexpr std::int64_t kTileN = 128, kTileK = 32;

/// Rows of a tile: 128 where at least three quarters of the last one are used.
std::int64_t tile_rows(std::int64_t outputs) { return (outputs + 127) / 128 * 128 - outputs <= 32 ? 128 : 64; }

/// Eight channels of every pixel are one aligned vector already.
bool is_channels_last(const Tensor& t, std::int64_t channels) {
    const Strides& s = t.strides();
    return s[1] == 1 && channels % 8 == 0 && s[0] % 8 == 0 && s[2] % 8 == 0 && s[3] % 8 == 0 && t.address() % 16 == 0;
}

/// Bytes of a sample's channels-last copy.
std::int64_t copy_bytes(const Tensor& image, std::int64_t groups) {
    return image.size(2) * image.size(3) * groups * round_up(image.size(1) / groups, 8) * 2;
}

/// Samples of an image as (samples, groups span, h, w) with the channels last: the tensor itself where they are.
Tensor readable(const Tensor& image, std::int64_t groups, std::int64_t n, std::int64_t samples) {
    if (is_channels_last(image, image.size(1) / groups)) return narrow(image, 0, n, samples);
    const Tensor copy = channels_last(image, groups, n, samples);
    return permute(reshape(copy, {samples, image.size(2), image.size(3), copy.size(2) * copy.size(3)}), {0, 3, 1, 2});
}

/// A packed 1x1 whose planes can be read in vectors as they are.
bool reads_planes(const Pass& p) {
    const Strides& s = p.image.strides();
    const std::int64_t plane = p.image.size(2) * p.image.size(3);
    return p.y.taps == 1 && p.x.taps == 1 && p.y.in_step == 1 && p.x.in_step == 1 && p.y.in_first == 0 &&
           p.x.in_first == 0 && p.y.count == p.image.size(2) && p.x.count == p.image.size(3) && plane % 8 == 0 &&
           s[3] == 1 && s[2] == p.image.size(3) && s[1] % 8 == 0 && s[0] % 8 == 0 && p.image.address() % 16 == 0;
}

}  // namespace

void run_coopmat(const Pass& p) {
    if (p.y.count * p.x.count == 0) return;
    Stream& on = stream_of(p.out);
    const std::int64_t span = round_up(p.channels, 8), terms = round_up(span * p.y.taps * p.x.taps, kTileK);
    const std::int64_t tile = tile_rows(p.outputs), lines = round_up(p.outputs, tile);
    const Tensor weight = pack_weights(p, span, lines, terms, true);
    const bool across = reads_planes(p);
    const std::int64_t step = samples_of(p, across ? 0 : copy_bytes(p.image, p.groups));
    for (std::int64_t n = 0; n < p.image.size(0); n += step) {
        const std::int64_t samples = std::min(step, p.image.size(0) - n);
        Pass slice = p;
        slice.image = across ? narrow(p.image, 0, n, samples) : readable(p.image, p.groups, n, samples);
        slice.out = narrow(p.out, 0, n, samples);
        ConvArgs args = pass_arguments(slice, 0, samples);
        args.weight = weight.address();
        const std::uint64_t groups = static_cast<std::uint64_t>(lines / tile) *
                                     ceil_div(args.pixels, static_cast<std::uint64_t>(kTileN)) * args.groups;
        on.launch(tile == 128 ? kernel_128 : kernel_64, p.image.dtype(), Spec{across, stores_vectors(slice, 8)},
                  linear_grid(groups), args, {slice.image, weight, p.bias}, {p.out});
    }
}

void coopmat_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& s) {
    Stream& on = stream_of(out);
    const std::int64_t tile = tile_rows(s.outputs_each()), lines = round_up(s.outputs_each(), tile),
                       span = round_up(s.channels_each(), 8), columns = round_up(span * s.taps(), kTileN);
    const std::int64_t tiles = lines / tile * (columns / kTileN) * s.groups;
    const std::int64_t bytes = std::max(copy_bytes(grad, s.groups), copy_bytes(input, s.groups));
    const PartialSums sums = plan_partial_sums(grad, input, s, lines, columns, tiles, 8192, bytes);
    for (const PartialSums::Slice& slice : sums.slices) {
        // The kernel takes the gradient's pixels to lie one after another.
        const Tensor g = channels_last(grad, s.groups, slice.n, slice.samples);
        const Tensor x = readable(input, s.groups, slice.n, slice.samples);
        ConvWeightArgs args = sums.arguments(grad, x, s, slice, true);
        args.gradient = g.address();
        on.launch(tile == 128 ? weight_128 : weight_64, grad.dtype(), {},
                  linear_grid(static_cast<std::uint64_t>(slice.parts * tiles)), args, {g, x}, {sums.partial});
    }
    reduce_weight_gradient(sums, out, s, span);
}

}  // namespace vkml::conv

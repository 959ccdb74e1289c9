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
// Fours that a workgroup adds up at least, eight of each invocation, and how many such parts there are at most.
constexpr std::int64_t kPart = 1024, kMostParts = 128;

std::int64_t fours(std::int64_t v) { return (v + kWide - 1) / kWide; }

/// How the lines of four windows lie in aligned fours: how many cover one, and where it begins in the first.
struct Fours {
    std::uint32_t vectors = 0, shift = 0;

    Fours(const Tensor& image, std::int64_t left, std::int64_t taps) {
        const Strides& s = image.strides();
        const bool aligned = image.dtype() != DType::f64 && s[3] == 1 && image.size(3) % kWide == 0 &&
                             s[0] % kWide == 0 && s[1] % kWide == 0 && s[2] % kWide == 0 &&
                             image.address() % (kWide * itemsize(image.dtype())) == 0;
        if (!aligned) return;
        shift = u32((left % kWide + kWide) % kWide);
        vectors = u32(fours(shift + kWide + taps - 1));
    }
};

/// The weights as the kernel reads them: in the type computed with, all taps of a channel together.
Tensor direct_weights(const Pass& p, std::int64_t terms) {
    const Strides& s = p.weight.strides();
    const bool plain = p.weight.dtype() == DType::f32 && p.channels == 1 && p.outputs == 1 && p.y.kernel_first == 0 &&
                       p.x.kernel_first == 0 && p.y.kernel_step == 1 && p.x.kernel_step == 1 && s[3] == 1 &&
                       s[2] == p.x.taps && p.group_stride == terms;
    return plain ? p.weight : pack_weights(p, std::max<std::int64_t>(p.channels, 1), p.outputs, terms, false);
}

}  // namespace

void run_direct(const Pass& p) {
    if (p.y.count * p.x.count == 0) return;
    Stream& on = stream_of(p.out);
    const std::int64_t terms = p.channels * p.y.taps * p.x.taps;
    const Tensor weight = direct_weights(p, terms);
    // A position is four of the line here.
    Pass wide = p;
    wide.x.count = fours(p.x.count);
    const bool window = p.x.in_step == 1 && std::abs(p.x.tap_step) == 1 && p.x.taps <= kMostColumns && terms > 0;
    const bool vectors = stores_vectors(p, kWide) && p.x.count % kWide == 0;
    const Fours lines(p.image, p.x.in_first - (p.x.tap_step > 0 ? 0 : p.x.taps - 1), p.x.taps);
    const Spec spec{vectors, window ? u32(p.x.taps) : 0u, p.x.tap_step > 0, window ? lines.vectors : 0u,
                    window ? lines.shift : 0u};
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
    const std::int64_t longest = std::max(kPart, (s.batch * s.out.h * wide.out.w + kMostParts - 1) / kMostParts);
    const PartialSums sums =
        plan_partial_sums(g, input, wide, s.outputs_each(), s.channels_each() * s.taps(), tiles, longest);
    const bool window = w.stride.w == 1 && w.dilation.w == 1, one = window && w.kernel.w <= kMostColumns;
    const Fours lines(input, -w.padding.w, columns);
    const bool own = s.out.w % kWide == 0 && g.dtype() != DType::f64 && g.address() % 16 == 0;
    const Spec spec{u32(columns), window, one ? lines.vectors : 0u, one ? lines.shift : 0u, own};
    for (const PartialSums::Slice& slice : sums.slices) {
        const ConvWeightArgs args = sums.arguments(g, input, wide, slice);
        on.launch(weight_kernel, g.dtype(), spec, linear_grid(static_cast<std::uint64_t>(slice.parts * tiles)), args,
                  {g, input}, {sums.partial});
    }
    reduce_weight_gradient(sums, out, s, s.channels_each());
}

}  // namespace vkml::conv

#include "vkml/ops/conv2d/conv2d_launch.h"

#include <algorithm>
#include <numeric>

#include "vkml/ops/conv2d/conv2d_pack.spv.h"
#include "vkml/ops/conv2d/conv2d_reduce.spv.h"
#include "vkml/ops/conv2d/conv2d_repack.spv.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/runtime/divisor.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml::conv {
namespace {

constexpr Kernel pack_kernel{"conv2d_pack", spv::conv2d_pack};
constexpr Kernel pack_raw_kernel{"conv2d_pack", spv::conv2d_pack_raw};
constexpr Kernel repack_kernel{"conv2d_repack", spv::conv2d_repack};
constexpr Kernel reduce_kernel{"conv2d_reduce", spv::conv2d_reduce};

constexpr std::int64_t kMostElements = (std::int64_t{1} << 29) - 1;  // of a slice: offsets in bytes are 32 bits

Address element(const Tensor& t, std::int64_t offset) {
    return t.address() + static_cast<Address>(offset) * itemsize(t.dtype());
}

DType value_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// Furthest element of one sample from its first.
std::int64_t reach(const Tensor& t) {
    std::int64_t furthest = 0;
    for (int i = 1; i < 4; i++) furthest += (t.size(i) - 1) * t.strides()[i];
    return furthest + 1;
}

template <class Args>
void set_positions(Args& args, std::int64_t samples, std::int64_t rows, std::int64_t row) {
    const Divisor plane(u32(std::max<std::int64_t>(rows * row, 1))), line(u32(std::max<std::int64_t>(row, 1)));
    args.pixels = u32(samples * rows * row), args.plane = u32(rows * row), args.row = u32(row);
    args.plane_multiplier = plane.multiplier, args.row_multiplier = line.multiplier;
    args.shifts = pair(plane.shift, line.shift);
}

template <class Args>
void set_image(Args& args, const Tensor& image, std::int64_t n, const Axis& y, const Axis& x) {
    args.image = element(image, n * image.strides()[0]);
    args.n_stride = u32(image.strides()[0]), args.c_stride = u32(image.strides()[1]);
    args.h_stride = u32(image.strides()[2]), args.w_stride = u32(image.strides()[3]);
    args.h = u32(image.size(2)), args.w = u32(image.size(3));
    args.y0 = static_cast<std::int32_t>(y.in_first), args.x0 = static_cast<std::int32_t>(x.in_first);
    args.in_step = pair(y.in_step, x.in_step), args.tap_step = pair(y.tap_step, x.tap_step);
    args.taps = pair(y.taps, x.taps);
}

}  // namespace

Axis forward_axis(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                  std::int64_t dilation) {
    return {.count = out,
            .out_first = 0,
            .out_step = 1,
            .in_first = -padding,
            .in_step = stride,
            .taps = kernel,
            .tap_step = dilation,
            .kernel_first = 0,
            .kernel_step = 1};
}

Axis gradient_axis(std::int64_t image, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation, std::int64_t phase) {
    // Position phase + i stride meets tap k of output o where o stride = phase + i stride + padding - k dilation.
    const std::int64_t step = stride / std::gcd(stride, dilation);
    std::int64_t first = 0;
    while (first < step && (phase + padding - first * dilation) % stride != 0) first++;
    const std::int64_t taps = first < step && first < kernel ? (kernel - 1 - first) / step + 1 : 0;
    return {.count = phase < image ? (image - 1 - phase) / stride + 1 : 0,
            .out_first = phase,
            .out_step = stride,
            .in_first = taps ? (phase + padding - first * dilation) / stride : 0,
            .in_step = 1,
            .taps = taps,
            .tap_step = -step * dilation / stride,
            .kernel_first = first,
            .kernel_step = step};
}

std::int64_t samples_of(const Pass& p, std::int64_t bytes_each) {
    const std::int64_t in = std::max(reach(p.image), p.image.strides()[0]), out = p.out.numel() / p.out.size(0);
    std::int64_t most = std::min(kMostElements / std::max({in, out, std::int64_t{1}}), p.image.size(0));
    if (bytes_each > 0) most = std::min(most, kWorkspace / bytes_each);
    return std::max<std::int64_t>(most, 1);
}

ConvArgs pass_arguments(const Pass& p, std::int64_t n, std::int64_t samples) {
    ConvArgs args{};
    set_image(args, p.image, n, p.y, p.x);
    set_positions(args, samples, p.y.count, p.x.count);
    args.bias = p.bias.defined() ? p.bias.address() : 0;
    args.channels = u32(p.channels), args.outputs = u32(p.outputs), args.groups = u32(p.groups);
    const std::int64_t width = p.out.size(3);
    args.out_c = u32(p.out.size(2) * width);
    args.out_y = u32(p.y.out_step * width), args.out_x = u32(p.x.out_step);
    args.columns = u32(p.x.count);
    args.out = element(p.out, n * p.out.strides()[0] + p.y.out_first * width + p.x.out_first);
    return args;
}

bool stores_vectors(const Pass& p, std::int64_t width) {
    return p.x.out_step == 1 && p.y.out_step == 1 && p.y.count * p.x.count % width == 0 && p.x.count == p.out.size(3) &&
           p.y.count == p.out.size(2) && p.out.address() % 16 == 0;
}

Tensor pack_weights(const Pass& p, std::int64_t span, std::int64_t lines, std::int64_t columns, bool raw) {
    const DType dtype = p.weight.dtype();
    const Tensor out = empty({p.groups, lines, columns}, raw ? dtype : value_dtype(dtype), p.weight.device());
    if (out.numel() == 0) return out;
    const Strides& s = p.weight.strides();
    const ConvPackArgs args{.from = element(p.weight, p.y.kernel_first * s[2] + p.x.kernel_first * s[3]),
                            .to = out.address(),
                            .count = static_cast<std::uint64_t>(out.numel()),
                            .group_stride = p.group_stride,
                            .m_stride = p.m_stride,
                            .c_stride = p.c_stride,
                            .y_stride = s[2] * p.y.kernel_step,
                            .x_stride = s[3] * p.x.kernel_step,
                            .m = u32(p.outputs),
                            .c = u32(p.channels),
                            .lines = u32(lines),
                            .columns = u32(columns),
                            .span = u32(span),
                            .taps_x = u32(std::max<std::int64_t>(p.x.taps, 1)),
                            .taps = u32(p.y.taps * p.x.taps)};
    stream_of(out).launch(raw ? pack_raw_kernel : pack_kernel, raw ? storage_dtype(2) : dtype, {},
                          linear_grid(ceil_div(args.count, kThreads)), args, {p.weight}, {out});
    return out;
}

Tensor channels_last(const Tensor& image, std::int64_t groups, std::int64_t n, std::int64_t samples) {
    const std::int64_t channels = image.size(1) / groups, span = round_up(channels, 8), width = image.size(3),
                       plane = image.size(2) * width;
    const Tensor out = empty({samples, plane, groups, span}, image.dtype(), image.device());
    if (out.numel() == 0) return out;
    const Strides& s = image.strides();
    const Divisor row(u32(width));
    const ConvRepackArgs args{.from = element(image, n * s[0]),
                              .to = out.address(),
                              .n_stride = u32(s[0]),
                              .c_stride = u32(s[1]),
                              .h_stride = u32(s[2]),
                              .w_stride = u32(s[3]),
                              .plane = u32(plane),
                              .row = u32(width),
                              .row_multiplier = row.multiplier,
                              .row_shift = row.shift,
                              .channels = u32(channels),
                              .groups = u32(groups),
                              .span = u32(span),
                              .batch = u32(samples)};
    const bool vectors =
        s[3] == 1 && s[2] == width && plane % 8 == 0 && s[1] % 8 == 0 && s[0] % 8 == 0 && args.from % 16 == 0;
    const std::uint64_t tiles =
        ceil_div(static_cast<std::uint64_t>(plane), 64) * ceil_div(static_cast<std::uint64_t>(span), 64);
    stream_of(out).launch(repack_kernel, storage_dtype(2), Spec{vectors},
                          linear_grid(tiles * static_cast<std::uint64_t>(groups * samples)), args, {image}, {out});
    return out;
}

PartialSums plan_partial_sums(const Tensor& grad, const Tensor& input, const Sizes& s, std::int64_t lines,
                              std::int64_t columns, std::int64_t tiles, std::int64_t longest,
                              std::int64_t sample_bytes) {
    const auto divide = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const DType dtype = value_dtype(grad.dtype());
    const std::int64_t matrix = s.groups * lines * columns * static_cast<std::int64_t>(itemsize(dtype));
    const std::int64_t reach_each = std::max({reach(input), input.strides()[0], s.outputs * s.out.h * s.out.w});
    std::int64_t step = std::clamp<std::int64_t>(kMostElements / std::max<std::int64_t>(reach_each, 1), 1, s.batch);
    if (sample_bytes > 0) step = std::clamp<std::int64_t>(kWorkspace / sample_bytes, 1, step);

    const std::uint32_t known = stream_of(grad).limits().compute_units;
    const std::int64_t pixels = s.batch * s.out.h * s.out.w, units = 2 * std::int64_t{known ? known : 16};
    const std::int64_t most = std::max<std::int64_t>(kWorkspace / matrix, 1);
    const std::int64_t wanted = std::max(divide(pixels, longest), std::min(divide(units, tiles), pixels / 128));
    const std::int64_t length = round_up(divide(pixels, std::clamp<std::int64_t>(wanted, 1, most)), 32);

    PartialSums sums;
    for (std::int64_t n = 0; n < s.batch; n += step) {
        const std::int64_t samples = std::min(step, s.batch - n), parts = divide(samples * s.out.h * s.out.w, length);
        sums.slices.push_back({.n = n, .samples = samples, .first = sums.parts, .parts = parts, .length = length});
        sums.parts += parts;
    }
    sums.partial = empty({sums.parts, s.groups, lines, columns}, dtype, grad.device());
    return sums;
}

ConvWeightArgs PartialSums::arguments(const Tensor& grad, const Tensor& input, const Sizes& s, const Slice& slice,
                                      bool sliced) const {
    const Window& w = s.window;
    const std::int64_t n = sliced ? 0 : slice.n;
    ConvWeightArgs args{};
    set_image(args, input, n, forward_axis(s.out.h, w.kernel.h, w.stride.h, w.padding.h, w.dilation.h),
              forward_axis(s.out.w, w.kernel.w, w.stride.w, w.padding.w, w.dilation.w));
    set_positions(args, slice.samples, s.out.h, s.out.w);
    args.gradient = element(grad, n * grad.strides()[0]);
    args.partial = element(partial, slice.first * partial.strides()[0]);
    args.channels = u32(s.channels_each()), args.outputs = u32(s.outputs_each()), args.groups = u32(s.groups);
    args.out_c = u32(grad.size(2) * grad.size(3)), args.out_y = u32(grad.size(3));
    args.part = u32(slice.length), args.lines = u32(partial.size(2)), args.columns = u32(partial.size(3));
    return args;
}

void reduce_weight_gradient(const PartialSums& sums, const Tensor& out, const Sizes& s, std::int64_t span) {
    const ConvReduceArgs args{.partial = sums.partial.address(),
                              .to = out.address(),
                              .count = static_cast<std::uint64_t>(out.size(0) * s.taps() * span),
                              .parts = u32(sums.parts),
                              .groups = u32(s.groups),
                              .lines = u32(sums.partial.size(2)),
                              .columns = u32(sums.partial.size(3)),
                              .m = u32(s.outputs_each()),
                              .c = u32(s.channels_each()),
                              .taps = u32(s.taps()),
                              .span = u32(span)};
    stream_of(out).launch(reduce_kernel, out.dtype(), {}, linear_grid(ceil_div(args.count, kThreads)), args,
                          {sums.partial}, {out});
}

}  // namespace vkml::conv

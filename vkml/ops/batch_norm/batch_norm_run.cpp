#include <algorithm>

#include "vkml/ops/batch_norm/batch_norm_kernel.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/divisor.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr Kernel apply_kernel{"batch_norm_apply", spv::batch_norm_apply, batch_norm_apply_cpu};
constexpr Kernel backward_kernel{"batch_norm_backward", spv::batch_norm_backward, batch_norm_backward_cpu};
constexpr Kernel statistics_kernel{"batch_norm_statistics", spv::batch_norm_statistics, batch_norm_statistics_cpu};
constexpr Kernel sums_kernel{"batch_norm_sums", spv::batch_norm_sums, batch_norm_sums_cpu};
constexpr Kernel fold_kernel{"batch_norm_fold", spv::batch_norm_fold, batch_norm_fold_cpu};

constexpr std::int64_t kThreads = 128, kUnroll = 4, kItem = 4;
constexpr std::int64_t kFolded = 4;  // channels of a workgroup of batch_norm_fold.slang

DType value_dtype(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }
Address address_of(const Tensor& t) { return t.defined() ? t.address() : 0; }

/// Whether weight and bias come in the input's 16-bit dtype.
bool narrow(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Tensor& one = weight.defined() ? weight : bias;
    return one.defined() && one.dtype() != value_dtype(x);
}

/// A tensor as (batch, channels, plane) with one stride along the plane, and the arguments that say so.
struct View {
    Tensor x;
    BatchNormArgs args{};
    std::int64_t items = 0;  // fours of a plane
    bool aligned = false;

    explicit View(const Tensor& input) : x(input) {
        std::int64_t plane = 1, stride = 1;
        for (int i = x.ndim() - 1; i >= 2; i--) {
            if (x.size(i) == 1) continue;
            if (plane == 1) stride = x.strides()[i];
            if (x.strides()[i] != stride * plane) {
                x = contiguous(input), plane = numel_of_plane(), stride = 1;
                break;
            }
            plane *= x.size(i);
        }
        if (stride < 0 || stride >= std::int64_t{1} << 31) x = contiguous(input), stride = 1;
        items = (plane + kItem - 1) / kItem;
        const auto u = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
        args.x = x.address();
        args.n_stride = x.strides()[0], args.c_stride = x.strides()[1], args.x_stride = u(stride);
        args.batch = u(x.size(0)), args.channels = u(x.size(1)), args.plane = u(plane);
        const Divisor by_items(u(items)), by_channels(args.channels);
        args.item_multiplier = by_items.multiplier, args.channel_multiplier = by_channels.multiplier;
        args.shifts = by_items.shift | by_channels.shift << 16;
        aligned = x.dtype() != DType::f64 && stride == 1 && plane % kItem == 0 && args.n_stride % kItem == 0 &&
                  args.c_stride % kItem == 0 && args.x % (kItem * itemsize(x.dtype())) == 0;
    }

  private:
    std::int64_t numel_of_plane() const {
        std::int64_t n = 1;
        for (int i = 2; i < x.ndim(); i++) n *= x.size(i);
        return n;
    }
};

/// Parts of a channel: enough for all units of the device, each of some work.
std::int64_t parts_of(const View& v, const Limits& limits) {
    const std::int64_t units = 16 * std::int64_t{limits.compute_units ? limits.compute_units : 16};
    const std::int64_t items = v.items * v.args.batch, wanted = (units + v.args.channels - 1) / v.args.channels;
    return std::clamp<std::int64_t>(std::min(wanted, items / (kThreads * kUnroll)), 1, 1024);
}

/// Runs a fold over every channel in parts and returns the parts.
Tensor fold_parts(const Kernel& kernel, View& v, bool aligned, bool relative, std::int64_t& parts, UseList reads) {
    Stream& on = stream_of(v.x);
    const std::int64_t items = v.items * v.args.batch;
    parts = on.device().is_cpu() ? 1 : parts_of(v, on.limits());
    const std::int64_t part = (items + parts - 1) / parts;
    parts = (items + part - 1) / part;
    const Tensor partial = empty({parts, v.args.channels, 3}, value_dtype(v.x), v.x.device());
    v.args.partial = partial.address();
    v.args.part = static_cast<std::uint32_t>(part);
    on.launch(kernel, v.x.dtype(), Spec{aligned, relative},
              linear_grid(static_cast<std::uint64_t>(parts) * v.args.channels), v.args, reads, {partial});
    return partial;
}

void launch_items(const Kernel& kernel, const View& v, const Spec& spec, UseList reads, const Tensor& out) {
    const std::uint64_t items = static_cast<std::uint64_t>(v.items) * v.args.batch * v.args.channels;
    stream_of(out).launch(kernel, out.dtype(), spec, linear_grid(ceil_div(items, kThreads)), v.args, reads, {out});
}

}  // namespace

bool batch_norm_fits(const Tensor& x) { return x.numel() > 0 && x.numel() < std::int64_t{1} << 31; }

BatchStatistics batch_norm_statistics(const Tensor& input, double eps) {
    View v(input);
    const Shape channels{input.size(1)};
    const DType wide = value_dtype(input);
    const auto make = [&] { return empty(channels, wide, input.device()); };
    BatchStatistics out{make(), make(), make(), make()};
    std::int64_t parts = 0;
    const Tensor partial = fold_parts(statistics_kernel, v, v.aligned, true, parts, {v.x});
    BatchNormFoldArgs args{.x = v.args.x,
                           .partial = partial.address(),
                           .relative = out.relative.address(),
                           .rstd = out.rstd.address(),
                           .mean = out.mean.address(),
                           .variance = out.variance.address(),
                           .sums = 0,
                           .c_stride = v.args.c_stride,
                           .channels = v.args.channels,
                           .parts = static_cast<std::uint32_t>(parts),
                           .eps_high = static_cast<float>(eps),
                           .eps_low = 0};
    args.eps_low = static_cast<float>(eps - static_cast<double>(args.eps_high));
    stream_of(input).launch(fold_kernel, input.dtype(), {}, linear_grid(ceil_div(v.args.channels, kFolded)), args,
                            {v.x, partial}, {out.relative, out.rstd, out.mean, out.variance});
    return out;
}

Tensor batch_norm_apply(const Tensor& input, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                        const Tensor& bias, bool relative) {
    View v(input);
    const Tensor out = empty(input.shape(), input.dtype(), input.device());
    v.args.y = out.address(), v.args.mean = mean.address(), v.args.rstd = rstd.address();
    v.args.weight = address_of(weight), v.args.bias = address_of(bias);
    launch_items(apply_kernel, v, Spec{v.aligned, relative, false, narrow(input, weight, bias)},
                 {v.x, mean, rstd, weight, bias}, out);
    return out;
}

Tensor batch_norm_sums(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd, bool relative) {
    View v(input);
    const Tensor g = contiguous(grad);
    v.args.gradient = g.address(), v.args.mean = mean.address(), v.args.rstd = rstd.address();
    const bool aligned = v.aligned && g.address() % 16 == 0;
    std::int64_t parts = 0;
    const Tensor partial = fold_parts(sums_kernel, v, aligned, relative, parts, {v.x, g, mean, rstd});
    const Tensor sums = empty({2, input.size(1)}, value_dtype(input), input.device());
    BatchNormFoldArgs args{};
    args.x = v.args.x, args.partial = partial.address(), args.sums = sums.address();
    args.channels = v.args.channels, args.parts = static_cast<std::uint32_t>(parts);
    stream_of(input).launch(fold_kernel, input.dtype(), {}, linear_grid(ceil_div(v.args.channels, kFolded)), args,
                            {partial}, {sums});
    return sums;
}

Tensor batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                           const Tensor& weight, const Tensor& sums) {
    View v(input);
    const Tensor g = contiguous(grad), out = empty(input.shape(), input.dtype(), input.device());
    v.args.gradient = g.address(), v.args.y = out.address(), v.args.mean = mean.address(), v.args.rstd = rstd.address();
    v.args.weight = address_of(weight), v.args.sums = address_of(sums);
    const bool own = sums.defined();
    launch_items(backward_kernel, v, Spec{v.aligned && g.address() % 16 == 0, own, own, narrow(input, weight, {})},
                 {v.x, g, mean, rstd, weight, sums}, out);
    return out;
}

}  // namespace vkml

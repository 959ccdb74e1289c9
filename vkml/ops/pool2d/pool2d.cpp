#include "vkml/ops/pool2d/pool2d.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/pool2d/pool2d_kernel.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

/// One pooling, checked: its sizes, and what the divisor is.
struct Pooling {
    Int2 kernel, stride, padding, dilation, image{0}, out{0};
    std::int64_t batch = 0, channels = 0;
    std::uint32_t divisor = 0;
};

/// Positions along one axis; with ceil_mode a last window may overhang, but must start inside the image or its left
/// padding.
std::int64_t positions(std::int64_t extent, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d,
                       bool ceil_mode) {
    const std::int64_t room = extent + 2 * p - d * (k - 1) - 1;
    if (!ceil_mode) return room < 0 ? 0 : room / s + 1;
    const std::int64_t up = room + s - 1;
    std::int64_t n = (up < 0 ? 0 : up / s) + (up < 0 ? 0 : 1);
    if ((n - 1) * s >= extent + p) n--;
    return n;
}

Pooling plan(std::string_view op, const Tensor& input, Int2 kernel, Int2 stride, Int2 padding, Int2 dilation,
             bool ceil_mode) {
    check(input.ndim() == 4, op, ": expected rank 4, got ", input.shape());
    check(kernel.h >= 1 && kernel.w >= 1, op, ": kernel: expected sizes >= 1, got ", to_string(kernel));
    if (stride.h == 0) stride.h = kernel.h;
    if (stride.w == 0) stride.w = kernel.w;
    check(stride.h >= 1 && stride.w >= 1, op, ": stride: expected sizes >= 0, got ", to_string(stride));
    check(dilation.h >= 1 && dilation.w >= 1, op, ": dilation: expected sizes >= 1, got ", to_string(dilation));
    const Int2 half{kernel.h / 2, kernel.w / 2};
    check(padding.h >= 0 && padding.w >= 0, op, ": padding: expected sizes >= 0, got ", to_string(padding));
    check(padding.h <= half.h && padding.w <= half.w, op, ": padding: expected at most half the kernel ",
          to_string(half), ", got ", to_string(padding));
    check(input.size(1) >= 1 && input.size(2) >= 1 && input.size(3) >= 1, op,
          ": expected non-empty channels and images, got ", input.shape());
    Pooling p{.kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation};
    p.batch = input.size(0), p.channels = input.size(1), p.image = {input.size(2), input.size(3)};
    p.out = {positions(p.image.h, kernel.h, stride.h, padding.h, dilation.h, ceil_mode),
             positions(p.image.w, kernel.w, stride.w, padding.w, dilation.w, ceil_mode)};
    check(p.out.h >= 1 && p.out.w >= 1, op, ": expected an output of at least one element, got ", to_string(p.out),
          " from ", input.shape());
    for (const std::int64_t extent : {p.batch * p.channels, p.image.h, p.image.w, p.out.h, p.out.w, kernel.h, kernel.w,
                                      stride.h, stride.w, dilation.h, dilation.w})
        check(extent < (std::int64_t{1} << 31), op, ": expected extents below 2^31, got ", extent);
    return p;
}

Pool2dArgs arguments(const Pooling& p, const Tensor& from, const Tensor& to, const Tensor& indices) {
    const auto u = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
    Pool2dArgs args{.from = from.address(),
                    .to = to.address(),
                    .indices = indices.defined() ? indices.address() : 0,
                    .strides = {},
                    .planes = u(p.batch * p.channels),
                    .channels = u(p.channels),
                    .h = u(p.image.h),
                    .w = u(p.image.w),
                    .out_h = u(p.out.h),
                    .out_w = u(p.out.w),
                    .kernel_h = u(p.kernel.h),
                    .kernel_w = u(p.kernel.w),
                    .stride_h = u(p.stride.h),
                    .stride_w = u(p.stride.w),
                    .padding_h = static_cast<std::int32_t>(p.padding.h),
                    .padding_w = static_cast<std::int32_t>(p.padding.w),
                    .dilation_h = u(p.dilation.h),
                    .dilation_w = u(p.dilation.w),
                    .divisor = p.divisor};
    for (int i = 0; i < 4; i++) args.strides[i] = from.strides()[i];
    return args;
}

Grid threads_for(const Tensor& t) { return linear_grid(ceil_div(static_cast<std::uint64_t>(t.numel()), kThreads)); }

Tensor max_backward(const Tensor& grad, const Tensor& indices, const Pooling& p) {
    const Tensor g = contiguous(grad);
    Tensor out = empty({p.batch, p.channels, p.image.h, p.image.w}, g.dtype(), g.device());
    if (out.numel() > 0)
        stream_of(g).launch(max_pool2d_backward_kernel, g.dtype(), {}, threads_for(out), arguments(p, g, out, indices),
                            {g, indices}, {out});
    // Linear in g: its gradient picks what lies at the indices.
    return record("max_pool2d_backward", out, {grad}, keep_nothing, [indices, p](const Backward& b) -> Grads {
        const Tensor flat = reshape(b.grad(), {p.batch, p.channels, p.image.h * p.image.w});
        return {reshape(gather(flat, 2, reshape(indices, {p.batch, p.channels, p.out.h * p.out.w})), indices.shape())};
    });
}

Tensor avg_forward(const Tensor& input, const Pooling& p);

Tensor avg_backward(const Tensor& grad, const Pooling& p) {
    const Tensor g = contiguous(grad);
    Tensor out = empty({p.batch, p.channels, p.image.h, p.image.w}, g.dtype(), g.device());
    if (out.numel() > 0)
        stream_of(g).launch(avg_pool2d_backward_kernel, g.dtype(), {}, threads_for(out), arguments(p, g, out, {}), {g},
                            {out});
    return record("avg_pool2d_backward", out, {grad}, keep_nothing,
                  [p](const Backward& b) -> Grads { return {avg_forward(b.grad(), p)}; });
}

Tensor avg_forward(const Tensor& input, const Pooling& p) {
    Tensor out = empty({p.batch, p.channels, p.out.h, p.out.w}, input.dtype(), input.device());
    if (out.numel() > 0)
        stream_of(input).launch(avg_pool2d_kernel, input.dtype(), {}, threads_for(out), arguments(p, input, out, {}),
                                {input}, {out});
    return record("avg_pool2d", out, {input}, keep_nothing,
                  [p](const Backward& b) -> Grads { return {avg_backward(b.grad(), p)}; });
}

}  // namespace

std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, Int2 kernel, Int2 stride, Int2 padding,
                                                  Int2 dilation, bool ceil_mode) {
    const Pooling p = plan("max_pool2d", input, kernel, stride, padding, dilation, ceil_mode);
    check<DTypeError>(input.dtype() != DType::boolean, "max_pool2d: expected a number type, got ", input.dtype());
    const Shape shape{p.batch, p.channels, p.out.h, p.out.w};
    Tensor out = empty(shape, input.dtype(), input.device()), indices = empty(shape, DType::i64, input.device());
    if (out.numel() > 0)
        stream_of(input).launch(max_pool2d_kernel, input.dtype(), {}, threads_for(out),
                                arguments(p, input, out, indices), {input}, {out, indices});
    out = record("max_pool2d", out, {input}, keep_nothing,
                 [indices, p](const Backward& b) -> Grads { return {max_backward(b.grad(), indices, p)}; });
    return {out, indices};
}

Tensor max_pool2d(const Tensor& input, Int2 kernel, Int2 stride, Int2 padding, Int2 dilation, bool ceil_mode) {
    const TensorArg inputs[] = {input};
    if (tracks(inputs)) return max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode).first;
    const Pooling p = plan("max_pool2d", input, kernel, stride, padding, dilation, ceil_mode);
    check<DTypeError>(input.dtype() != DType::boolean, "max_pool2d: expected a number type, got ", input.dtype());
    Tensor out = empty({p.batch, p.channels, p.out.h, p.out.w}, input.dtype(), input.device());
    if (out.numel() > 0)
        stream_of(input).launch(max_pool2d_kernel, input.dtype(), {}, threads_for(out), arguments(p, input, out, {}),
                                {input}, {out});
    return out;
}

Tensor avg_pool2d(const Tensor& input, Int2 kernel, Int2 stride, Int2 padding, bool ceil_mode, bool count_include_pad,
                  std::optional<std::int64_t> divisor_override) {
    Pooling p = plan("avg_pool2d", input, kernel, stride, padding, 1, ceil_mode);
    check<DTypeError>(is_floating(input.dtype()), "avg_pool2d: expected a floating-point tensor, got ", input.dtype());
    if (divisor_override)
        check(*divisor_override >= 1 && *divisor_override < kRealElements,
              "avg_pool2d: divisor_override: expected 1 or more, got ", *divisor_override);
    p.divisor = divisor_override    ? static_cast<std::uint32_t>(*divisor_override)
                : count_include_pad ? 0
                                    : kRealElements;
    return avg_forward(input, p);
}

}  // namespace vkml

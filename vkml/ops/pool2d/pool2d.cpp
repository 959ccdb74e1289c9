#include "vkml/ops/pool2d/pool2d.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/pool2d/pool2d_kernel.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/divisor.h"
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
    check_below_2_31(op, "kernel", kernel);
    check_below_2_31(op, "stride", stride);
    check_below_2_31(op, "dilation", dilation);
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

constexpr std::int64_t kItem = 4;  // neighbours of a line that a thread writes

/// Sizes that both kinds of arguments hold; `line` and `lines` are those of the tensor that is written.
template <class Args>
void set_sizes(Args& args, const Pooling& p, std::int64_t samples, std::int64_t lines, std::int64_t line) {
    const auto u = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
    args.planes = u(samples * p.channels), args.channels = u(p.channels);
    args.h = u(p.image.h), args.w = u(p.image.w), args.out_h = u(p.out.h), args.out_w = u(p.out.w);
    args.kernel_h = u(p.kernel.h), args.kernel_w = u(p.kernel.w);
    args.stride_h = u(p.stride.h), args.stride_w = u(p.stride.w);
    args.padding_h = static_cast<std::int32_t>(p.padding.h), args.padding_w = static_cast<std::int32_t>(p.padding.w);
    args.dilation_h = u(p.dilation.h), args.dilation_w = u(p.dilation.w);
    args.divisor = p.divisor;
    const Divisor row(u((line + kItem - 1) / kItem)), plane(u(lines));
    args.row_multiplier = row.multiplier, args.line_multiplier = plane.multiplier;
    args.shifts = row.shift | plane.shift << 16;
}

Address element(const Tensor& t, std::int64_t offset) {
    return t.defined() ? t.address() + static_cast<Address>(offset) * itemsize(t.dtype()) : 0;
}

/// Calls body(first sample, samples, grid) for slices of the batch whose items fit 31 bits.
template <class Body>
void for_slices(const Pooling& p, std::int64_t lines, std::int64_t line, const Body& body) {
    const std::int64_t each = p.channels * lines * ((line + kItem - 1) / kItem), most = (std::int64_t{1} << 31) - 1;
    check<Error>(each <= most, "pool2d: expected samples below 2^31 outputs, got ", each * kItem);
    const std::int64_t step = std::min(most / each, p.batch);
    for (std::int64_t n = 0; n < p.batch; n += step) {
        const std::int64_t samples = std::min(step, p.batch - n);
        body(n, samples, linear_grid(ceil_div(static_cast<std::uint64_t>(samples * each), kThreads)));
    }
}

/// The specialization of the forward kernels: how the lines of four windows lie in aligned fours.
Spec forward_spec(const Pooling& p, const Tensor& from, const Tensor& to, bool places) {
    constexpr std::int64_t kMostVectors = 5, kMostTaps = 7, kMostRows = 3;
    const Strides& s = from.strides();
    const std::int64_t shift = (4 - p.padding.w % 4) % 4;
    const std::int64_t reach = shift + 3 * p.stride.w + (p.kernel.w - 1) * p.dilation.w + 1;
    const bool narrow = from.dtype() == DType::f32 || from.dtype() == DType::f16 || from.dtype() == DType::bf16;
    const bool aligned = s[3] == 1 && p.image.w % 4 == 0 && s[0] % 4 == 0 && s[1] % 4 == 0 && s[2] % 4 == 0 &&
                         from.address() % (4 * itemsize(from.dtype())) == 0;
    const bool vectors = narrow && aligned && p.kernel.w <= kMostTaps && reach <= 4 * kMostVectors;
    const bool stores = narrow && p.out.w % 4 == 0 && to.address() % 16 == 0;
    if (!vectors) return Spec{0u, 1u, 1u, 1u, 0u, stores, 1u, places};
    const auto u = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
    return Spec{u((reach + 3) / 4),
                u(p.kernel.w),
                u(p.stride.w),
                u(p.dilation.w),
                u(shift),
                stores,
                u(std::min<std::int64_t>(p.kernel.h, kMostRows)),
                places};
}

/// Offsets inside a plane that fit 31 bits: the tensor itself, unless its strides are huge.
Tensor near_planes(const Tensor& t) {
    const std::int64_t reach = (t.size(2) - 1) * t.strides()[2] + (t.size(3) - 1) * t.strides()[3];
    check<Error>(t.size(2) * t.size(3) < kRealElements, "pool2d: expected planes below 2^31 elements, got ", t.shape());
    return reach < kRealElements ? t : contiguous(t);
}

void launch_forward(const Kernel& kernel, const Pooling& p, const Tensor& input, const Tensor& out,
                    const Tensor& indices) {
    if (out.numel() == 0) return;
    const Tensor from = near_planes(input);
    const Strides& s = from.strides();
    Pool2dArgs args{};
    args.n_stride = s[0], args.c_stride = s[1];
    args.h_stride = static_cast<std::uint32_t>(s[2]), args.w_stride = static_cast<std::uint32_t>(s[3]);
    for_slices(p, p.out.h, p.out.w, [&](std::int64_t n, std::int64_t samples, Grid grid) {
        const std::int64_t written = n * p.channels * p.out.h * p.out.w;
        args.from = element(from, n * s[0]), args.to = element(out, written), args.indices = element(indices, written);
        set_sizes(args, p, samples, p.out.h, p.out.w);
        stream_of(out).launch(kernel, from.dtype(), forward_spec(p, from, out, indices.defined()), grid, args, {from},
                              {out, indices});
    });
}

Tensor launch_backward(const Kernel& kernel, const Pooling& p, const Tensor& grad, const Tensor& indices) {
    const Tensor g = contiguous(grad);
    Tensor out = empty({p.batch, p.channels, p.image.h, p.image.w}, g.dtype(), g.device());
    if (out.numel() == 0) return out;
    const Divisor stride_h(static_cast<std::uint32_t>(p.stride.h)), stride_w(static_cast<std::uint32_t>(p.stride.w));
    Pool2dBackwardArgs args{};
    args.stride_h_multiplier = stride_h.multiplier, args.stride_w_multiplier = stride_w.multiplier;
    args.stride_shifts = stride_h.shift | stride_w.shift << 16;
    const Spec spec{g.dtype() != DType::f64 && p.image.w % 4 == 0};
    for_slices(p, p.image.h, p.image.w, [&](std::int64_t n, std::int64_t samples, Grid grid) {
        const std::int64_t read = n * p.channels * p.out.h * p.out.w;
        args.from = element(g, read), args.indices = element(indices, read);
        args.to = element(out, n * p.channels * p.image.h * p.image.w);
        set_sizes(args, p, samples, p.image.h, p.image.w);
        stream_of(out).launch(kernel, g.dtype(), spec, grid, args, {g, indices}, {out});
    });
    return out;
}

Tensor max_backward(const Tensor& grad, const Tensor& indices, const Pooling& p) {
    // Linear in the gradient: its gradient picks what lies at the indices.
    return record("max_pool2d_backward", launch_backward(max_pool2d_backward_kernel, p, grad, indices), {grad},
                  keep_nothing, [indices, p](const Backward& b) -> Grads {
                      const Tensor flat = reshape(b.grad(), {p.batch, p.channels, p.image.h * p.image.w});
                      return {reshape(gather(flat, 2, reshape(indices, {p.batch, p.channels, p.out.h * p.out.w})),
                                      indices.shape())};
                  });
}

Tensor avg_forward(const Tensor& input, const Pooling& p);

Tensor avg_backward(const Tensor& grad, const Pooling& p) {
    return record("avg_pool2d_backward", launch_backward(avg_pool2d_backward_kernel, p, grad, {}), {grad}, keep_nothing,
                  [p](const Backward& b) -> Grads { return {avg_forward(b.grad(), p)}; });
}

Tensor avg_forward(const Tensor& input, const Pooling& p) {
    Tensor out = empty({p.batch, p.channels, p.out.h, p.out.w}, input.dtype(), input.device());
    launch_forward(avg_pool2d_kernel, p, input, out, {});
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
    launch_forward(max_pool2d_kernel, p, input, out, indices);
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
    launch_forward(max_pool2d_kernel, p, input, out, {});
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

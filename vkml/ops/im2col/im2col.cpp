#include "vkml/ops/im2col/im2col.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/im2col/im2col_kernel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128, kPer = 4;  // the latter: elements of an invocation of im2col

std::uint32_t narrow(std::string_view op, std::int64_t value) {
    check(value < (std::int64_t{1} << 31), op, ": expected extents below 2^31, got ", value);
    return static_cast<std::uint32_t>(value);
}

Im2colArgs arguments(std::string_view op, const Tensor& from, const Tensor& to, std::int64_t channels, Int2 image,
                     const Window& w) {
    const Int2 out = w.positions(image);
    Im2colArgs args{.from = from.address(),
                    .to = to.address(),
                    .strides = {},
                    .count = static_cast<std::uint64_t>(to.numel()),
                    .channels = narrow(op, channels),
                    .h = narrow(op, image.h),
                    .w = narrow(op, image.w),
                    .out_h = narrow(op, out.h),
                    .out_w = narrow(op, out.w),
                    .kernel_h = narrow(op, w.kernel.h),
                    .kernel_w = narrow(op, w.kernel.w),
                    .stride_h = narrow(op, w.stride.h),
                    .stride_w = narrow(op, w.stride.w),
                    .padding_h = static_cast<std::int32_t>(narrow(op, w.padding.h)),
                    .padding_w = static_cast<std::int32_t>(narrow(op, w.padding.w)),
                    .dilation_h = narrow(op, w.dilation.h),
                    .dilation_w = narrow(op, w.dilation.w)};
    for (int i = 0; i < from.ndim(); i++) args.strides[i] = from.strides()[i];
    return args;
}

}  // namespace

Int2 Window::positions(Int2 image) const {
    const auto along = [](std::int64_t extent, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d) {
        const std::int64_t room = extent + 2 * p - d * (k - 1) - 1;
        return room < 0 ? 0 : room / s + 1;
    };
    return {along(image.h, kernel.h, stride.h, padding.h, dilation.h),
            along(image.w, kernel.w, stride.w, padding.w, dilation.w)};
}

void check_window(std::string_view op, const Window& w, Int2 image) {
    check(w.kernel.h >= 1 && w.kernel.w >= 1, op, ": kernel: expected sizes >= 1, got ", to_string(w.kernel));
    check(w.stride.h >= 1 && w.stride.w >= 1, op, ": stride: expected sizes >= 1, got ", to_string(w.stride));
    check(w.padding.h >= 0 && w.padding.w >= 0, op, ": padding: expected sizes >= 0, got ", to_string(w.padding));
    check(w.dilation.h >= 1 && w.dilation.w >= 1, op, ": dilation: expected sizes >= 1, got ", to_string(w.dilation));
    check_below_2_31(op, "kernel", w.kernel);
    check_below_2_31(op, "stride", w.stride);
    check_below_2_31(op, "padding", w.padding);
    check_below_2_31(op, "dilation", w.dilation);
    const Int2 padded{image.h + 2 * w.padding.h, image.w + 2 * w.padding.w};
    const Int2 reach{w.dilation.h * (w.kernel.h - 1) + 1, w.dilation.w * (w.kernel.w - 1) + 1};
    check(reach.h <= padded.h && reach.w <= padded.w, op, ": expected a kernel no larger than the padded input ",
          to_string(padded), ", got ", to_string(reach));
}

Tensor im2col(const Tensor& input, const Window& window) {
    check(input.ndim() == 4, "im2col: expected rank 4, got ", input.shape());
    const Int2 image{input.size(2), input.size(3)};
    check_window("im2col", window, image);
    const Int2 out_size = window.positions(image);
    const std::int64_t channels = input.size(1);
    Tensor out = empty({input.size(0), channels * window.kernel.h * window.kernel.w, out_size.h * out_size.w},
                       input.dtype(), input.device());
    if (out.numel() > 0)
        stream_of(input).launch(im2col_kernel, storage_dtype(itemsize(input.dtype())), {},
                                linear_grid(ceil_div(static_cast<std::uint64_t>(out.numel()), kThreads * kPer)),
                                arguments("im2col", input, out, channels, image, window), {input}, {out});
    return record("im2col", out, {input}, keep_nothing,
                  [image, window](const Backward& b) -> Grads { return {col2im(b.grad(), image, window)}; });
}

Tensor col2im(const Tensor& cols, Int2 image, const Window& window) {
    check(cols.ndim() == 3, "col2im: expected rank 3, got ", cols.shape());
    check<DTypeError>(cols.dtype() != DType::boolean, "col2im: expected a number type, got ", cols.dtype());
    check_window("col2im", window, image);
    const Int2 positions = window.positions(image);
    const std::int64_t taps = window.kernel.h * window.kernel.w;
    check(cols.size(1) % taps == 0, "col2im: expected rows in multiples of ", taps, ", got ", cols.shape());
    check(cols.size(2) == positions.h * positions.w, "col2im: expected ", positions.h * positions.w, " columns, got ",
          cols.shape());
    const std::int64_t channels = cols.size(1) / taps;
    Tensor out = empty({cols.size(0), channels, image.h, image.w}, cols.dtype(), cols.device());
    if (out.numel() > 0)
        stream_of(cols).launch(col2im_kernel, cols.dtype(), {},
                               linear_grid(ceil_div(static_cast<std::uint64_t>(out.numel()), kThreads)),
                               arguments("col2im", cols, out, channels, image, window), {cols}, {out});
    return record("col2im", out, {cols}, keep_nothing,
                  [window](const Backward& b) -> Grads { return {im2col(b.grad(), window)}; });
}

}  // namespace vkml

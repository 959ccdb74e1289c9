#include "vkml/ops/conv2d/conv2d.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/cat/cat.h"
#include "vkml/ops/conv2d/conv2d_choice.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

using namespace conv;

void check_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, const Window& window,
                  std::int64_t groups) {
    check(input.ndim() == 4, "conv2d: expected rank 4, got ", input.shape());
    check(weight.ndim() == 4, "conv2d: weight: expected rank 4, got ", weight.shape());
    check<DTypeError>(is_floating(input.dtype()), "conv2d: expected a floating-point tensor, got ", input.dtype());
    check<DTypeError>(weight.dtype() == input.dtype(), "conv2d: weight: expected ", input.dtype(), ", got ",
                      weight.dtype());
    const std::int64_t channels = input.size(1), outputs = weight.size(0);
    check(outputs >= 1, "conv2d: weight: expected at least 1 output channel, got ", weight.shape());
    check(groups >= 1 && channels % groups == 0 && outputs % groups == 0, "conv2d: groups: expected a divisor of ",
          channels, " and ", outputs, ", got ", groups);
    check(weight.size(1) == channels / groups, "conv2d: weight: expected ", channels / groups, " input channels (",
          channels, " / groups ", groups, "), got ", weight.size(1));
    if (bias.defined()) {
        check<DTypeError>(bias.dtype() == input.dtype(), "conv2d: bias: expected ", input.dtype(), ", got ",
                          bias.dtype());
        check(bias.shape() == Shape{outputs}, "conv2d: bias: expected shape ", Shape{outputs}, ", got ", bias.shape());
    }
    check_window("conv2d", window, {input.size(2), input.size(3)});
    common_device("conv2d", {&input, &weight, &bias});
}

/// The size of the result.
Int2 check_transposed(const Tensor& input, const Tensor& weight, const Tensor& bias, const Window& w, Int2 more,
                      std::int64_t groups) {
    constexpr std::string_view op = "conv_transpose2d";
    check(input.ndim() == 4, op, ": expected rank 4, got ", input.shape());
    check<DTypeError>(is_floating(input.dtype()), op, ": expected a floating-point tensor, got ", input.dtype());
    check<DTypeError>(weight.dtype() == input.dtype(), op, ": weight: expected ", input.dtype(), ", got ",
                      weight.dtype());
    const std::int64_t channels = input.size(1);
    check(groups >= 1 && channels % groups == 0, op, ": groups: expected a divisor of ", channels, ", got ", groups);
    check(weight.size(0) == channels, op, ": weight: expected ", channels, " input channels, got ", weight.size(0));
    check(weight.size(1) >= 1, op, ": weight: expected at least 1 output channel, got ", weight.shape());
    if (bias.defined()) {
        const Shape shape{weight.size(1) * groups};
        check<DTypeError>(bias.dtype() == input.dtype(), op, ": bias: expected ", input.dtype(), ", got ",
                          bias.dtype());
        check(bias.shape() == shape, op, ": bias: expected shape ", shape, ", got ", bias.shape());
    }
    check(input.size(2) >= 1 && input.size(3) >= 1, op, ": expected a non-empty image, got ", input.shape());
    check_below_2_31(op, "stride", w.stride);
    check_below_2_31(op, "padding", w.padding);
    check_below_2_31(op, "dilation", w.dilation);
    check(more.h >= 0 && more.w >= 0 && more.h < std::max(w.stride.h, w.dilation.h) &&
              more.w < std::max(w.stride.w, w.dilation.w),
          op, ": output_padding: expected less than the stride or the dilation, got ", to_string(more));
    const auto extent = [](std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d,
                           std::int64_t o) { return (size - 1) * s - 2 * p + d * (k - 1) + o + 1; };
    const Int2 image{extent(input.size(2), w.kernel.h, w.stride.h, w.padding.h, w.dilation.h, more.h),
                     extent(input.size(3), w.kernel.w, w.stride.w, w.padding.w, w.dilation.w, more.w)};
    check(image.h >= 1 && image.w >= 1, op, ": expected a result of at least one element, got ", to_string(image));
    check_window(op, w, image);
    common_device(op, {&input, &weight, &bias});
    return image;
}

/// A convolution and its two gradients are each other's gradients: all three are linear in both of their tensors.
Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Sizes& sizes);
Tensor input_gradient(const Tensor& grad, const Tensor& weight, const Sizes& sizes);
Tensor weight_gradient(const Tensor& grad, const Tensor& input, const Sizes& sizes);

Path path_of(Part part, const Sizes& sizes, const Tensor& t) {
    Stream& on = stream_of(t);
    return choose_path(part, sizes, t.dtype(), t.device().is_cpu(), on.limits(), on.dispatch_count());
}

/// An image whose samples 31-bit offsets can span: itself, unless its strides are huge.
Tensor near_image(const Tensor& t) {
    std::int64_t reach = 0;
    for (int i = 0; i < 4; i++) reach = std::max(reach, t.size(i) * std::abs(t.strides()[i]) / (i ? 1 : t.size(0)));
    return reach < (std::int64_t{1} << 29) ? t : contiguous(t);
}

void run(Path path, const Pass& pass) {
    if (path == Path::direct) return run_direct(pass);
    if (path == Path::coopmat) return run_coopmat(pass);
    run_tile(pass);
}

Tensor run_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Sizes& s) {
    const Tensor out = empty({s.batch, s.outputs, s.out.h, s.out.w}, input.dtype(), input.device());
    if (out.numel() == 0) return out;
    const Path path = path_of(Part::forward, s, input);
    if (path == Path::columns || path == Path::pointwise) return columns_forward(input, weight, bias, s);
    const Window& w = s.window;
    run(path, {.image = near_image(input),
               .weight = weight,
               .bias = bias.defined() ? contiguous(bias) : bias,
               .out = out,
               .groups = s.groups,
               .channels = s.channels_each(),
               .outputs = s.outputs_each(),
               .group_stride = s.outputs_each() * weight.strides()[0],
               .m_stride = weight.strides()[0],
               .c_stride = weight.strides()[1],
               .y = forward_axis(s.out.h, w.kernel.h, w.stride.h, w.padding.h, w.dilation.h),
               .x = forward_axis(s.out.w, w.kernel.w, w.stride.w, w.padding.w, w.dilation.w)});
    return out;
}

Tensor run_input_gradient(const Tensor& grad, const Tensor& weight, const Sizes& s) {
    const Path path = path_of(Part::input_gradient, s, grad);
    if (path == Path::columns || path == Path::pointwise) return columns_input_gradient(grad, weight, s);
    const Tensor out = empty({s.batch, s.channels, s.image.h, s.image.w}, grad.dtype(), grad.device());
    const Window& w = s.window;
    Pass pass{.image = near_image(grad),
              .weight = weight,
              .bias = {},
              .out = out,
              .groups = s.groups,
              .channels = s.outputs_each(),
              .outputs = s.channels_each(),
              .group_stride = s.outputs_each() * weight.strides()[0],
              .m_stride = weight.strides()[1],
              .c_stride = weight.strides()[0],
              .y = {},
              .x = {}};
    for (std::int64_t y = 0; y < std::min(w.stride.h, s.image.h); y++)
        for (std::int64_t x = 0; x < std::min(w.stride.w, s.image.w); x++) {
            pass.y = gradient_axis(s.image.h, w.kernel.h, w.stride.h, w.padding.h, w.dilation.h, y);
            pass.x = gradient_axis(s.image.w, w.kernel.w, w.stride.w, w.padding.w, w.dilation.w, x);
            run(path, pass);
        }
    return out;
}

Tensor run_weight_gradient(const Tensor& grad, const Tensor& input, const Sizes& s) {
    const Path path = path_of(Part::weight_gradient, s, grad);
    if (path == Path::columns || path == Path::pointwise) return columns_weight_gradient(grad, input, s);
    const Tensor out =
        empty({s.outputs, s.channels_each(), s.window.kernel.h, s.window.kernel.w}, grad.dtype(), grad.device());
    const Tensor image = near_image(input);
    if (path == Path::direct)
        direct_weight_gradient(grad, image, out, s);
    else if (path == Path::coopmat)
        coopmat_weight_gradient(grad, image, out, s);
    else
        tile_weight_gradient(grad, image, out, s);
    return out;
}

template <class Body>
Tensor untaped(const Body& body) {
    const NoGrad off;
    return body();
}

Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Sizes& s) {
    const Tensor out = untaped([&] { return run_forward(input, weight, bias, s); });
    const bool has_bias = bias.defined();
    const auto backward = [s, has_bias](const Backward& b) {
        Grads grads(has_bias ? 3 : 2);
        if (b.needs(0)) grads[0] = input_gradient(b.grad(), b.input(1), s);
        if (b.needs(1)) grads[1] = weight_gradient(b.grad(), b.input(0), s);
        if (has_bias && b.needs(2)) grads[2] = sum(b.grad(), {0, 2, 3});
        return grads;
    };
    if (has_bias) return record("conv2d", out, {input, weight, bias}, keep_inputs(0, 1), backward);
    return record("conv2d", out, {input, weight}, keep_inputs(0, 1), backward);
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, const Sizes& s) {
    const Tensor out = untaped([&] { return run_input_gradient(grad, weight, s); });
    return record("conv2d_input_gradient", out, {grad, weight}, keep_inputs(0, 1), [s](const Backward& b) {
        Grads grads(2);
        if (b.needs(0)) grads[0] = forward(b.grad(), b.input(1), {}, s);
        if (b.needs(1)) grads[1] = weight_gradient(b.input(0), b.grad(), s);
        return grads;
    });
}

Tensor weight_gradient(const Tensor& grad, const Tensor& input, const Sizes& s) {
    const Tensor out = untaped([&] { return run_weight_gradient(grad, input, s); });
    return record("conv2d_weight_gradient", out, {grad, input}, keep_inputs(0, 1), [s](const Backward& b) {
        Grads grads(2);
        if (b.needs(0)) grads[0] = forward(b.input(1), b.grad(), {}, s);
        if (b.needs(1)) grads[1] = input_gradient(b.input(0), b.grad(), s);
        return grads;
    });
}

Sizes sizes_of(const Tensor& input, const Tensor& weight, const Window& window, std::int64_t groups) {
    const Int2 image{input.size(2), input.size(3)};
    return {.batch = input.size(0),
            .channels = input.size(1),
            .outputs = weight.size(0),
            .groups = groups,
            .image = image,
            .out = window.positions(image),
            .window = window};
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, Int2 padding, Int2 dilation,
              std::int64_t groups) {
    check(weight.ndim() == 4, "conv2d: weight: expected rank 4, got ", weight.shape());
    if (input.ndim() == 3)  // one sample without its batch axis
        return squeeze(conv2d(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), {0});
    const Window window{{weight.size(2), weight.size(3)}, stride, padding, dilation};
    check_conv2d(input, weight, bias, window, groups);
    return forward(input, weight, bias, sizes_of(input, weight, window, groups));
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, std::string_view padding,
              Int2 dilation, std::int64_t groups) {
    check(padding == "same" || padding == "valid", "conv2d: padding: expected sizes, same or valid, got '", padding,
          "'");
    if (padding == "valid") return conv2d(input, weight, bias, stride, Int2(0), dilation, groups);
    check(weight.ndim() == 4, "conv2d: weight: expected rank 4, got ", weight.shape());
    check(stride == Int2(1), "conv2d: stride: expected 1 where padding is same, got ", to_string(stride));
    check_below_2_31("conv2d", "dilation", dilation);
    const Int2 zeros{dilation.h * (weight.size(2) - 1), dilation.w * (weight.size(3) - 1)};
    Tensor out =
        conv2d(input, weight, bias, stride, Int2(zeros.h - zeros.h / 2, zeros.w - zeros.w / 2), dilation, groups);
    // Both sides got the zeros of the end; where that is one too many, the first position is left out.
    for (const auto& [axis, odd] : {std::pair{-2, zeros.h % 2}, std::pair{-1, zeros.w % 2}})
        if (odd) out = narrow(out, axis, 1, out.size(axis) - 1);
    return contiguous(out);
}

Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, Int2 padding,
                        Int2 output_padding, std::int64_t groups, Int2 dilation) {
    check(weight.ndim() == 4, "conv_transpose2d: weight: expected rank 4, got ", weight.shape());
    if (input.ndim() == 3)
        return squeeze(
            conv_transpose2d(unsqueeze(input, 0), weight, bias, stride, padding, output_padding, groups, dilation),
            {0});
    const Window window{{weight.size(2), weight.size(3)}, stride, padding, dilation};
    const Int2 image = check_transposed(input, weight, bias, window, output_padding, groups);
    const Int2 positions = window.positions(image);
    // With an output padding of a stride or more the image has positions that the input lacks: zeros.
    Tensor grad = input;
    for (const auto& [axis, missing] :
         {std::pair{2, positions.h - input.size(2)}, std::pair{3, positions.w - input.size(3)}})
        if (missing > 0) {
            Shape shape = grad.shape();
            shape[axis] = missing;
            const Tensor parts[] = {grad, full(shape, 0.0, grad.dtype(), grad.device())};
            grad = cat(parts, axis);
        }
    const Sizes sizes{.batch = input.size(0),
                      .channels = weight.size(1) * groups,
                      .outputs = weight.size(0),
                      .groups = groups,
                      .image = image,
                      .out = positions,
                      .window = window};
    const Tensor out = input_gradient(grad, weight, sizes);
    return bias.defined() ? add(out, reshape(bias, {bias.size(0), 1, 1})) : out;
}

}  // namespace vkml

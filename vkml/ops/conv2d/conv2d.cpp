#include "vkml/ops/conv2d/conv2d.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/cat/cat.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/im2col/im2col.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::int64_t kColumnBytes = std::int64_t{256} << 20;

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

/// True when the columns are the input itself.
bool is_pointwise(const Window& w) { return w.kernel == Int2(1) && w.stride == Int2(1) && w.padding == Int2(0); }

/// (N, groups, C / groups kh kw, L)
Tensor columns(const Tensor& input, const Window& window, std::int64_t groups) {
    const Int2 out = window.positions({input.size(2), input.size(3)});
    const std::int64_t rows = input.size(1) / groups * window.kernel.h * window.kernel.w;
    const Shape shape{input.size(0), groups, rows, out.h * out.w};
    return reshape(is_pointwise(window) ? input : im2col(input, window), shape);
}

/// (groups, C_out / groups, C / groups kh kw)
Tensor weight_matrix(const Tensor& weight, std::int64_t groups) {
    return reshape(weight, {groups, weight.size(0) / groups, weight.size(1) * weight.size(2) * weight.size(3)});
}

/// Samples whose columns fit the buffer; at least one.
std::int64_t samples_at_once(const Tensor& input, const Window& window) {
    const Int2 out = window.positions({input.size(2), input.size(3)});
    const std::int64_t each = input.size(1) * window.kernel.h * window.kernel.w * out.h * out.w *
                              static_cast<std::int64_t>(itemsize(input.dtype()));
    return std::clamp<std::int64_t>(kColumnBytes / std::max<std::int64_t>(1, each), 1,
                                    std::max<std::int64_t>(1, input.size(0)));
}

Tensor product(const Tensor& input, const Tensor& weight, const Tensor& bias, const Window& window,
               std::int64_t groups) {
    const Int2 out = window.positions({input.size(2), input.size(3)});
    const Tensor matrix = weight_matrix(weight, groups);
    const std::int64_t step = samples_at_once(input, window);
    std::vector<Tensor> parts;
    for (std::int64_t n = 0; n == 0 || n < input.size(0); n += step) {
        const Tensor some = step >= input.size(0) ? input : narrow(input, 0, n, std::min(step, input.size(0) - n));
        Tensor part =
            reshape(matmul(matrix, columns(some, window, groups)), {some.size(0), weight.size(0), out.h, out.w});
        if (bias.defined()) part = add(part, reshape(bias, {weight.size(0), 1, 1}));
        parts.push_back(part);
    }
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

Grads gradients(const Backward& b, const Window& window, std::int64_t groups, bool has_bias) {
    const Tensor input = b.input(0), weight = b.input(1), &g = b.grad();
    const Int2 image{input.size(2), input.size(3)};
    Grads grads(has_bias ? 3 : 2);
    const Tensor matrices = reshape(g, {g.size(0), groups, g.size(1) / groups, g.size(2) * g.size(3)});
    if (b.needs(0)) {
        const Tensor cols = matmul(transpose(weight_matrix(weight, groups), -2, -1), matrices);
        const Shape flat{input.size(0), input.size(1) * window.kernel.h * window.kernel.w, g.size(2) * g.size(3)};
        grads[0] = is_pointwise(window) ? reshape(cols, input.shape()) : col2im(reshape(cols, flat), image, window);
    }
    if (b.needs(1)) {
        const Tensor each = matmul(matrices, transpose(columns(input, window, groups), -2, -1));
        grads[1] = reshape(sum(each, {0}), weight.shape());
    }
    if (has_bias && b.needs(2)) grads[2] = sum(g, {0, 2, 3});
    return grads;
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, Int2 padding, Int2 dilation,
              std::int64_t groups) {
    check(weight.ndim() == 4, "conv2d: weight: expected rank 4, got ", weight.shape());
    if (input.ndim() == 3)  // one sample without its batch axis
        return squeeze(conv2d(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), {0});
    const Window window{{weight.size(2), weight.size(3)}, stride, padding, dilation};
    check_conv2d(input, weight, bias, window, groups);
    if (recording_decisions())
        publish({.site = "conv2d.path",
                 .op = "conv2d",
                 .chose = is_pointwise(window) ? "pointwise" : "im2col",
                 .instead_of = "",
                 .because = is_pointwise(window) ? "a 1x1 kernel reads the input as its columns" : "the general path",
                 .seq = 0,
                 .dispatch = stream_of(input).dispatch_count()});
    Tensor out;
    {
        NoGrad off;
        out = product(input, weight, bias, window, groups);
    }
    const bool has_bias = bias.defined();
    const auto backward = [window, groups, has_bias](const Backward& b) {
        return gradients(b, window, groups, has_bias);
    };
    if (has_bias) return record("conv2d", out, {input, weight, bias}, keep_inputs(0, 1), backward);
    return record("conv2d", out, {input, weight}, keep_inputs(0, 1), backward);
}

Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, std::string_view padding,
              Int2 dilation, std::int64_t groups) {
    check(padding == "same" || padding == "valid", "conv2d: padding: expected sizes, same or valid, got ", padding);
    if (padding == "valid") return conv2d(input, weight, bias, stride, Int2(0), dilation, groups);
    check(weight.ndim() == 4, "conv2d: weight: expected rank 4, got ", weight.shape());
    check(stride == Int2(1), "conv2d: stride: expected 1 where padding is same, got ", to_string(stride));
    const Int2 zeros{dilation.h * (weight.size(2) - 1), dilation.w * (weight.size(3) - 1)};
    Tensor out =
        conv2d(input, weight, bias, stride, Int2(zeros.h - zeros.h / 2, zeros.w - zeros.w / 2), dilation, groups);
    // Both sides got the zeros of the end; where that is one too many, the first position is left out.
    for (const auto& [axis, odd] : {std::pair{-2, zeros.h % 2}, std::pair{-1, zeros.w % 2}})
        if (odd) out = narrow(out, axis, 1, out.size(axis) - 1);
    return contiguous(out);
}

}  // namespace vkml

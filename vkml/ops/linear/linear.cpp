#include "vkml/ops/linear/linear.h"

#include <array>
#include <span>

#include "vkml/autograd/node.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/elementwise/elementwise_internal.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

void check_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
    check(input.ndim() >= 1, "linear: expected rank >= 1, got ", input.shape());
    check(weight.ndim() == 2, "linear: weight: expected rank 2, got ", weight.shape());
    check<DTypeError>(is_floating(input.dtype()), "linear: expected a floating-point tensor, got ", input.dtype());
    check<DTypeError>(weight.dtype() == input.dtype(), "linear: weight: expected ", input.dtype(), ", got ",
                      weight.dtype());
    check(weight.size(1) == input.size(-1), "linear: weight: expected ", input.size(-1), " columns, got shape ",
          weight.shape());
    if (bias.defined()) {
        check<DTypeError>(bias.dtype() == input.dtype(), "linear: bias: expected ", input.dtype(), ", got ",
                          bias.dtype());
        check(bias.shape() == Shape{weight.size(0)}, "linear: bias: expected shape ", Shape{weight.size(0)}, ", got ",
              bias.shape());
    }
    common_device("linear", {&input, &weight, &bias});
}

Activation activation_named(std::string_view name) {
    constexpr std::string_view kNames[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
    for (int i = 0; i < 5; i++)
        if (name == kNames[i]) return static_cast<Activation>(i);
    fail<ShapeError>("linear: activation: expected none, relu, gelu, gelu_tanh or silu, got '", name, "'");
}

/// `g` is the gradient of the sum before any activation.
Grads gradients(const Backward& b, const Tensor& g, bool has_bias) {
    const Tensor input = b.input(0), weight = b.input(1);
    Grads grads(has_bias ? 3 : 2);
    if (b.needs(0)) grads[0] = matmul(g, weight);
    if (b.needs(1)) {
        // All rows at once: one product whose inner axis is the batch.
        const std::int64_t rows =
            input.ndim() == 1 ? 1 : numel(input.shape()) / std::max<std::int64_t>(1, input.size(-1));
        const std::int64_t count = input.size(-1) == 0 ? g.numel() / std::max<std::int64_t>(1, g.size(-1)) : rows;
        grads[1] = matmul(transpose(reshape(g, {count, g.size(-1)}), 0, 1), reshape(input, {count, input.size(-1)}));
    }
    if (has_bias && b.needs(2)) grads[2] = sum_to(g, {weight.size(0)});
    return grads;
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias, std::string_view activation) {
    check_linear(input, weight, bias);
    const Activation after = activation_named(activation);
    const std::array<TensorArg, 3> all{input, weight, bias};
    const bool has_bias = bias.defined();
    // gelu and silu need what is before them for the gradient, so it is kept, and they run apart; relu needs itself
    // only.
    const bool apart =
        after != Activation::none && after != Activation::relu && tracks(std::span(all).first(has_bias ? 3 : 2));
    Tensor out;
    {
        NoGrad off;
        const bool vector = input.ndim() == 1;
        out = gemm("linear", vector ? unsqueeze(input, 0) : input, transpose(weight, 0, 1), bias,
                   apart ? Activation::none : after);
        if (vector) out = squeeze(out, {0});
    }
    Keep keep = keep_inputs(0, 1);
    if (after == Activation::relu) keep.outputs = 1;
    const auto function = [has_bias, relu = after == Activation::relu](const Backward& b) -> Grads {
        return gradients(b, relu ? relu_backward(b.grad(), b.output()) : b.grad(), has_bias);
    };
    out = has_bias ? record("linear", out, {input, weight, bias}, keep, function)
                   : record("linear", out, {input, weight}, keep, function);
    if (!apart) return out;
    return after == Activation::silu ? silu(out) : gelu(out, after == Activation::gelu ? "none" : "tanh");
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    check(a.ndim() == 2 && b.ndim() == 2, "addmm: expected rank 2, got ", a.shape(), " and ", b.shape());
    check(a.size(1) == b.size(0), "addmm: expected inner sizes to agree, got ", a.shape(), " and ", b.shape());
    check<DTypeError>(input.dtype() == a.dtype() && a.dtype() == b.dtype(), "addmm: expected one dtype, got ",
                      input.dtype(), ", ", a.dtype(), " and ", b.dtype());
    common_device("addmm", {&input, &a, &b});
    const Shape shape{a.size(0), b.size(1)};
    check(input.ndim() <= 2 && broadcast_shapes("addmm", input.shape(), shape) == shape,
          "addmm: expected a shape that broadcasts to ", shape, ", got ", input.shape());
    const Tensor product = matmul(a, b);
    if (beta.floating == 0) {
        // The input has no part in the values, but its gradient is zeros, not nothing.
        const Tensor scaled = alpha.floating == 1 ? product : mul(product, alpha);
        return record(
            "addmm", scaled.view(scaled.layout()), {scaled, input}, keep_inputs(1), [](const Backward& b) -> Grads {
                const Tensor input = b.input(1);
                return {b.grad(), b.needs(1) ? full(input.shape(), 0.0, input.dtype(), input.device()) : Tensor{}};
            });
    }
    if (alpha.floating == 1 && beta.floating == 1) return add(product, input);
    if (is_floating(a.dtype()) && a.dtype() != DType::f64)
        return scaled_add(product, expand(input, shape), alpha.floating, beta.floating);
    return add(mul(product, alpha), mul(input, beta));
}

Tensor bmm(const Tensor& input, const Tensor& other) {
    check(input.ndim() == 3 && other.ndim() == 3, "bmm: expected rank 3, got ", input.shape(), " and ", other.shape());
    check(input.size(0) == other.size(0), "bmm: expected equal batches, got ", input.shape(), " and ", other.shape());
    return matmul(input, other);
}

Tensor dot(const Tensor& input, const Tensor& other) {
    check(input.ndim() == 1 && other.ndim() == 1, "dot: expected rank 1, got ", input.shape(), " and ", other.shape());
    return matmul(input, other);
}

Tensor outer(const Tensor& input, const Tensor& other) {
    check(input.ndim() == 1 && other.ndim() == 1, "outer: expected rank 1, got ", input.shape(), " and ",
          other.shape());
    return matmul(unsqueeze(input, 1), unsqueeze(other, 0));
}

}  // namespace vkml

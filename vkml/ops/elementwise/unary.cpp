#include "vkml/autograd/node.h"
#include "vkml/ops/elementwise/elementwise_internal.h"
#include "vkml/ops/elementwise/unary.spv.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr Kernel unary_kernel{"unary", spv::unary, unary_cpu};

Tensor normal_density(const Tensor& x) { return mul(exp(mul(square(x), -0.5)), 0.39894228040143267794); }

using Gradient = Tensor (*)(const Tensor& x, const Tensor& y, const Tensor& g, const Scalar& p, const Scalar& q);

constexpr Keep nothing = keep_nothing, x = keep_inputs(0), y = keep_output;

struct Line {
    std::string_view name;
    Takes takes;
    Keep keeps;
    Gradient gradient;
};

constexpr Line lines[] = {
#define VKML_UNARY(name, takes, value, keeps, gradient)                                                       \
    {#name, Takes::takes, keeps,                                                                              \
     []([[maybe_unused]] const Tensor& x, [[maybe_unused]] const Tensor& y, [[maybe_unused]] const Tensor& g, \
        [[maybe_unused]] const Scalar& p, [[maybe_unused]] const Scalar& q) -> Tensor { return gradient; }},
#include "vkml/ops/elementwise/unary.def"
#undef VKML_UNARY
};

}  // namespace

Tensor gelu_curvature(const Tensor& x) { return mul(normal_density(x), sub(2, square(x))); }

Tensor gelu_tanh_curvature(const Tensor& x) {
    const Tensor x2 = square(x);
    const Tensor s = sigmoid(mul(x, add(mul(x2, 0.07135481627260024), 1.5957691216057308)));
    const Tensor v = add(mul(x2, 0.21406444881780072), 1.5957691216057308);
    const Tensor t = mul(s, sub(1, s));
    const Tensor inner = add(mul(sub(1, mul(s, 2)), square(v)), mul(x, 0.42812889763560144));
    return mul(t, add(mul(v, 2), mul(x, inner)));
}

Tensor silu_curvature(const Tensor& x) {
    const Tensor s = sigmoid(x);
    return mul(mul(s, sub(1, s)), add(mul(x, sub(1, mul(s, 2))), 2));
}

Tensor mish_curvature(const Tensor& x) {
    const Tensor t = tanh(softplus(x)), s = sigmoid(x), u = sub(1, square(t));
    // slope = t + x u s, with t' = u s, u' = -2 t u s, s' = s (1 - s).
    return mul(mul(u, s), add(mul(x, sub(sub(1, s), mul(mul(t, s), 2))), 2));
}

DType unary_dtype(UnaryOp op, DType input) {
    const Line& line = lines[static_cast<int>(op)];
    return check_takes(line.name, line.takes, input);
}

Tensor apply_unary(UnaryOp op, const Tensor& input, const Scalar& p, const Scalar& q, const Tensor* target) {
    const Line& line = lines[static_cast<int>(op)];
    const DType dtype = check_takes(line.name, line.takes, input.dtype());
    if (dtype == DType::boolean) return input;  // sign
    const Tensor cast_input = input.dtype() == dtype ? Tensor() : cast(input, dtype);
    const Tensor& from = cast_input.defined() ? cast_input : input;
    const TensorArg inputs[] = {from};
    // What is read again of an overwritten input is a copy.
    const bool copies = target && line.keeps.inputs != 0 && tracks(inputs);
    const Tensor kept = copies ? copy_with_history(from) : from;
    const bool direct = target && target->dtype() == dtype && target->shape() == input.shape() &&
                        can_write_directly(*target, &from, nullptr);
    Tensor out = direct ? *target : empty(input.shape(), dtype, input.device());
    const Tensor none;
    launch_elementwise({.kernel = unary_kernel,
                        .op = static_cast<std::uint32_t>(op),
                        .dtype = dtype,
                        .a = &from,
                        .b = &none,
                        .out = &out,
                        .p = value_bits(p, dtype),
                        .q = value_bits(q, dtype)});
    if (direct) wrote_in_place(out);
    if (!is_floating(dtype)) return out;
    return record(line.name, std::move(out), {kept}, line.keeps, [&line, p, q](const Backward& b) -> Grads {
        return {line.gradient(line.keeps.inputs ? b.input(0) : Tensor(), line.keeps.outputs ? b.output() : Tensor(),
                              b.grad(), p, q)};
    });
}

#define VKML_PUBLIC(name) \
    Tensor name(const Tensor& x) { return apply_unary(UnaryOp::name, x); }
VKML_PUBLIC(neg)
VKML_PUBLIC(abs)
VKML_PUBLIC(sign)
VKML_PUBLIC(square)
VKML_PUBLIC(reciprocal)
VKML_PUBLIC(sqrt)
VKML_PUBLIC(rsqrt)
VKML_PUBLIC(exp)
VKML_PUBLIC(exp2)
VKML_PUBLIC(expm1)
VKML_PUBLIC(log)
VKML_PUBLIC(log2)
VKML_PUBLIC(log1p)
VKML_PUBLIC(erf)
VKML_PUBLIC(erfc)
VKML_PUBLIC(sin)
VKML_PUBLIC(cos)
VKML_PUBLIC(tan)
VKML_PUBLIC(tanh)
VKML_PUBLIC(sigmoid)
VKML_PUBLIC(relu)
VKML_PUBLIC(silu)
VKML_PUBLIC(softplus)
VKML_PUBLIC(logsigmoid)
VKML_PUBLIC(mish)
VKML_PUBLIC(round)
VKML_PUBLIC(floor)
VKML_PUBLIC(ceil)
VKML_PUBLIC(trunc)
#undef VKML_PUBLIC

Tensor gelu(const Tensor& x, std::string_view approximate) {
    check(approximate == "none" || approximate == "tanh", "gelu: approximate: expected none or tanh, got '",
          approximate, "'");
    return apply_unary(approximate == "none" ? UnaryOp::gelu : UnaryOp::gelu_tanh, x);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
    return apply_unary(UnaryOp::leaky_relu, x, negative_slope);
}
Tensor elu(const Tensor& x, double alpha) { return apply_unary(UnaryOp::elu, x, alpha); }
Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
    return apply_unary(UnaryOp::hardtanh, x, min_val, max_val);
}
Tensor bitwise_not(const Tensor& x) {
    if (x.dtype() == DType::boolean) return logical_not(x);
    return apply_unary(UnaryOp::bitwise_not, x);
}

}  // namespace vkml

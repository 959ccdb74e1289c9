#include "vkml/ops/elementwise/binary.spv.h"

#include <cmath>

#include "vkml/autograd/node.h"
#include "vkml/ops/elementwise/compare.spv.h"
#include "vkml/ops/elementwise/elementwise_internal.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr Kernel binary_kernel{"binary", spv::binary, binary_cpu};

/// t log a, where a may be a number.
Tensor times_log(const Tensor& t, const Arg& a) {
    if (a.is_tensor()) return mul(t, log(a.tensor()));
    return mul(t, std::log(a.number().kind == Scalar::Kind::floating ? a.number().floating : static_cast<double>(a.number().integer)));
}

/// d/db of b a^(b - 1), and d/da of a^b log a.
Tensor pow_slope_by_exponent(const Arg& a, const Arg& b) {
    const Tensor less_one = sub(b, 1);
    return add(pow(a, less_one), mul(b, apply_binary(BinaryOp::pow_log, a, less_one)));
}

using Gradient = Tensor (*)(const Arg& a, const Arg& b, const Tensor& y, const Tensor& g, double p, double q);

constexpr Keep nothing = keep_nothing, ab = keep_inputs(0, 1), b = keep_inputs(1), by{.inputs = 2, .outputs = 1};

struct Line {
    std::string_view name;
    Takes takes;
    Keep keeps;
    Gradient gradient_a, gradient_b;
};

#define VKML_GRADIENT(gradient)                                                                                         \
    []([[maybe_unused]] const Arg& a, [[maybe_unused]] const Arg& b, [[maybe_unused]] const Tensor& y,                  \
       [[maybe_unused]] const Tensor& g, [[maybe_unused]] double p, [[maybe_unused]] double q) -> Tensor { return gradient; }
constexpr Line lines[] = {
#define VKML_BINARY(name, takes, value, keeps, gradient_a, gradient_b) \
    {#name, Takes::takes, keeps, VKML_GRADIENT(gradient_a), VKML_GRADIENT(gradient_b)},
#include "vkml/ops/elementwise/binary.def"
#undef VKML_BINARY
};
#undef VKML_GRADIENT

constexpr std::string_view compare_names[] = {
#define VKML_COMPARE(name, takes, value) #name,
#include "vkml/ops/elementwise/compare.def"
#undef VKML_COMPARE
};
constexpr Kernel compare_kernel{"compare", spv::compare, compare_cpu};

/// Operands brought to one dtype and device; what was cast is kept alive here.
struct Operands {
    Tensor a_cast, b_cast;
    const Tensor* a;
    const Tensor* b;
    Device device;
    Shape shape;
    Scalar number{0.0};

    Operands(std::string_view op, const Arg& left, const Arg& right, DType dtype) : a(&left.tensor()), b(&right.tensor()) {
        device = common_device(op, {a, b});
        const auto convert = [dtype](const Tensor*& t, Tensor& converted) {
            if (!t->defined() || t->dtype() == dtype) return;
            converted = cast(*t, dtype);
            t = &converted;
        };
        if (left.is_tensor() && right.is_tensor()) {
            shape = a->shape() == b->shape() ? a->shape() : broadcast_shapes(op, a->shape(), b->shape());
        } else {
            shape = left.is_tensor() ? a->shape() : b->shape();
            number = left.is_tensor() ? right.number() : left.number();
        }
        convert(a, a_cast);
        convert(b, b_cast);
    }
};

void refuse_f64(const Line& line, Device device) {
    const bool transcendental = line.takes == Takes::number || line.takes == Takes::floating;
    const bool plain = line.name == "sub";
    check<NotImplementedError>(!transcendental || plain || device.is_cpu(), line.name, ": expected float32, float16 or bfloat16 on ",
                               device, ", got float64");
}

/// Tensors in, tensors or numbers out of the tape.
struct Numbers {
    bool a_is_number, b_is_number;
    Scalar value;
    Shape a_shape, b_shape;
    double p, q;
};

Grads gradients(const Line& line, const Numbers& n, const Backward& back) {
    const Tensor a = line.keeps.inputs & 1u && !n.a_is_number ? back.input(0) : Tensor();
    const Tensor b = line.keeps.inputs & 2u && !n.b_is_number ? back.input(1) : Tensor();
    const Tensor y = line.keeps.outputs ? back.output() : Tensor();
    const Arg left = n.a_is_number ? Arg(n.value) : Arg(a), right = n.b_is_number ? Arg(n.value) : Arg(b);
    Grads out(2);
    if (back.needs(0))
        if (Tensor g = line.gradient_a(left, right, y, back.grad(), n.p, n.q); g.defined()) out[0] = sum_to(g, n.a_shape);
    if (back.needs(1))
        if (Tensor g = line.gradient_b(left, right, y, back.grad(), n.p, n.q); g.defined()) out[1] = sum_to(g, n.b_shape);
    return out;
}

Tensor compare(CompareOp op, const Arg& a, const Arg& b) {
    const std::string_view name = compare_names[static_cast<int>(op)];
    const DType dtype = promoted_dtype(name, a, b);
    const Operands in(name, a, b, dtype);
    const Tensor out = empty(in.shape, DType::boolean, in.device);
    launch_elementwise({.kernel = compare_kernel, .op = static_cast<std::uint32_t>(op), .dtype = dtype, .a = in.a, .b = in.b, .out = &out,
                        .p = value_bits(in.number, dtype)});
    return out;
}

}  // namespace

Tensor apply_binary(BinaryOp op, const Arg& left, const Arg& right, double p, double q, const Tensor* target) {
    const Line& line = lines[static_cast<int>(op)];
    const DType dtype = check_takes(line.name, line.takes, promoted_dtype(line.name, left, right));
    const Operands in(line.name, left, right, dtype);
    if (dtype == DType::f64) refuse_f64(line, in.device);
    const bool direct = target && target->dtype() == dtype && target->shape() == in.shape && can_write_directly(*target, in.a, in.b);
    Tensor out = direct ? *target : empty(in.shape, dtype, in.device);
    const bool scaled = op == BinaryOp::scaled_add, numbers = !left.is_tensor() || !right.is_tensor();
    const bool divides = !is_floating(dtype) && (op == BinaryOp::floor_divide || op == BinaryOp::remainder);
    launch_elementwise({.kernel = binary_kernel, .op = static_cast<std::uint32_t>(op), .dtype = dtype, .a = in.a, .b = in.b, .out = &out,
                        .p = numbers ? value_bits(in.number, dtype) : scaled ? value_bits(p, dtype) : 0,
                        .q = divides ? stream(in.device).fault_address() : scaled ? value_bits(q, dtype) : 0,
                        .site = divides ? fault_site(line.name) : 0});
    if (direct) wrote_in_place(out);
    if (!is_floating(dtype)) return out;
    const TensorArg inputs[] = {*in.a, *in.b};
    if (!tracks(inputs)) return out;
    const Numbers rest{!left.is_tensor(), !right.is_tensor(), in.number, in.a->defined() ? in.a->shape() : Shape(),
                       in.b->defined() ? in.b->shape() : Shape(), p, q};
    attach(line.name, {&out, 1}, inputs, line.keeps, [&line, rest](const Backward& back) { return gradients(line, rest, back); });
    return out;
}

#define VKML_PUBLIC(name) \
    Tensor name(const Arg& a, const Arg& b) { return apply_binary(BinaryOp::name, a, b); }
VKML_PUBLIC(add)
VKML_PUBLIC(sub)
VKML_PUBLIC(mul)
VKML_PUBLIC(div)
VKML_PUBLIC(floor_divide)
VKML_PUBLIC(remainder)
VKML_PUBLIC(maximum)
VKML_PUBLIC(minimum)
VKML_PUBLIC(bitwise_and)
VKML_PUBLIC(bitwise_or)
VKML_PUBLIC(bitwise_xor)
#undef VKML_PUBLIC

Tensor add(const Tensor& a, const Tensor& b) { return apply_binary(BinaryOp::add, a, b); }

Tensor pow(const Arg& a, const Arg& b) {
    const bool integers = !is_floating(promoted_dtype("pow", a, b));
    check(!(integers && !b.is_tensor() && b.number().integer < 0), "pow: exponent: expected at least 0 for integers, got ",
          b.number().integer);
    return apply_binary(BinaryOp::pow, a, b);
}

Tensor scaled_add(const Tensor& a, const Tensor& b, double alpha, double beta) {
    return apply_binary(BinaryOp::scaled_add, a, b, alpha, beta);
}

#define VKML_PUBLIC(name) \
    Tensor name(const Arg& a, const Arg& b) { return compare(CompareOp::name, a, b); }
VKML_PUBLIC(equal)
VKML_PUBLIC(not_equal)
VKML_PUBLIC(less)
VKML_PUBLIC(less_equal)
VKML_PUBLIC(greater)
VKML_PUBLIC(greater_equal)
VKML_PUBLIC(logical_and)
VKML_PUBLIC(logical_or)
VKML_PUBLIC(logical_xor)
#undef VKML_PUBLIC

// The second operand is a number nobody looks at; false changes no dtype.
Tensor logical_not(const Tensor& x) { return compare(CompareOp::logical_not, x, false); }
Tensor isnan(const Tensor& x) { return compare(CompareOp::isnan, x, false); }
Tensor isinf(const Tensor& x) { return compare(CompareOp::isinf, x, false); }
Tensor isfinite(const Tensor& x) { return compare(CompareOp::isfinite, x, false); }

}  // namespace vkml

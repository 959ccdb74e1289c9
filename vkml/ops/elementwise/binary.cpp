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
    return mul(t, std::log(a.number().kind == Scalar::Kind::floating ? a.number().floating
                                                                     : static_cast<double>(a.number().integer)));
}

/// -g y / b. Three roundings to 16 bits would show where a broadcast sum cancels, so it is f32 until after the sum.
Tensor div_slope(const Tensor& g, const Tensor& y, const Arg& b) {
    const DType wide = itemsize(g.dtype()) == 2 ? DType::f32 : g.dtype();
    return neg(mul(cast(g, wide), div(cast(y, wide), cast(b.tensor(), wide))));
}

/// A tensor or a number that a gradient works out on its way; lives to the end of the expression.
struct Value {
    Tensor tensor{};
    Scalar number{0.0};
    operator Arg() const { return tensor.defined() ? Arg(tensor) : Arg(number); }
};

/// b - n where b may be a number, as the exponent of pow usually is: vkml::sub takes no two numbers.
Value sub(const Arg& b, int n) {
    if (b.is_tensor()) return {.tensor = vkml::sub(b, Arg(n))};
    const Scalar& x = b.number();
    return {.number = (x.kind == Scalar::Kind::floating ? x.floating : static_cast<double>(x.integer)) - n};
}

/// d/db of b a^(b - 1), and d/da of a^b log a.
Tensor pow_slope_by_exponent(const Arg& a, const Arg& b) {
    const Value less_one = sub(b, 1);
    return add(pow(a, less_one), mul(b, apply_binary(BinaryOp::pow_log, a, less_one)));
}

using Gradient = Tensor (*)(const Arg& a, const Arg& b, const Tensor& y, const Tensor& g, double p, double q);

/// What a gradient reads: bits of a, b and y.
enum Reads : unsigned { nothing = 0, a = 1, b = 2, ab = 3, y = 4, by = 6 };

struct Line {
    std::string_view name;
    Takes takes;
    Reads a_reads;
    Gradient gradient_a;
    Reads b_reads;
    Gradient gradient_b;
};

#define VKML_GRADIENT(gradient)                                                                        \
    []([[maybe_unused]] const Arg& a, [[maybe_unused]] const Arg& b, [[maybe_unused]] const Tensor& y, \
       [[maybe_unused]] const Tensor& g, [[maybe_unused]] double p,                                    \
       [[maybe_unused]] double q) -> Tensor { return gradient; }
constexpr Line lines[] = {
#define VKML_BINARY(name, takes, value, a_reads, gradient_a, b_reads, gradient_b) \
    {#name, Takes::takes, a_reads, VKML_GRADIENT(gradient_a), b_reads, VKML_GRADIENT(gradient_b)},
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

    Operands(std::string_view op, const Arg& left, const Arg& right, DType dtype)
        : a(&left.tensor()), b(&right.tensor()) {
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

/// Tensors in, tensors or numbers out of the tape.
struct Numbers {
    bool a_is_number, b_is_number;
    Scalar value;
    Shape a_shape, b_shape;
    double p, q;
};

Tensor gradient(const Numbers& n, const Backward& back, Reads reads, Gradient f) {
    const Tensor a = reads & Reads::a && !n.a_is_number ? back.input(0) : Tensor();
    const Tensor b = reads & Reads::b && !n.b_is_number ? back.input(1) : Tensor();
    const Tensor y = reads & Reads::y ? back.output() : Tensor();
    return f(n.a_is_number ? Arg(n.value) : Arg(a), n.b_is_number ? Arg(n.value) : Arg(b), y, back.grad(), n.p, n.q);
}

Grads gradients(const Line& line, const Numbers& n, const Backward& back) {
    Grads out(2);
    if (back.needs(0))
        if (const Tensor g = gradient(n, back, line.a_reads, line.gradient_a); g.defined())
            out[0] = cast(sum_to(g, n.a_shape), back.grad().dtype());
    if (back.needs(1))
        if (const Tensor g = gradient(n, back, line.b_reads, line.gradient_b); g.defined())
            out[1] = cast(sum_to(g, n.b_shape), back.grad().dtype());
    return out;
}

Tensor compare(CompareOp op, const Arg& a, const Arg& b) {
    const std::string_view name = compare_names[static_cast<int>(op)];
    const DType dtype = promoted_dtype(name, a, b);
    const Operands in(name, a, b, dtype);
    const Tensor out = empty(in.shape, DType::boolean, in.device);
    launch_elementwise({.kernel = compare_kernel,
                        .op = static_cast<std::uint32_t>(op),
                        .dtype = dtype,
                        .a = in.a,
                        .b = in.b,
                        .out = &out,
                        .p = value_bits(in.number, dtype)});
    return out;
}

bool wants_gradient(const Tensor& t) { return t.defined() && t.requires_grad(); }

struct Parameters {
    double p, q;
};

/// The launch of a binary operator. Integer division also carries where to report a zero.
Elementwise described(BinaryOp op, const Operands& in, DType dtype, Parameters parameters, const Tensor& out) {
    Elementwise work{.kernel = binary_kernel,
                     .op = static_cast<std::uint32_t>(op),
                     .dtype = dtype,
                     .a = in.a,
                     .b = in.b,
                     .out = &out};
    if (!in.a->defined() || !in.b->defined()) work.p = value_bits(in.number, dtype);
    if (op == BinaryOp::scaled_add) {
        work.p = value_bits(parameters.p, dtype);
        work.q = value_bits(parameters.q, dtype);
    }
    if (!is_floating(dtype) && (op == BinaryOp::floor_divide || op == BinaryOp::remainder)) {
        work.q = stream(in.device).fault_address();
        work.site = fault_site(op == BinaryOp::floor_divide ? "floor_divide" : "remainder");
    }
    return work;
}

}  // namespace

Tensor apply_binary(BinaryOp op, const Arg& left, const Arg& right, double p, double q, const Tensor* target) {
    const Line& line = lines[static_cast<int>(op)];
    const DType dtype = check_takes(line.name, line.takes, promoted_dtype(line.name, left, right));
    const Operands in(line.name, left, right, dtype);
    const TensorArg inputs[] = {*in.a, *in.b};
    const bool tracked = is_floating(dtype) && tracks(inputs);
    unsigned reads = 0;
    if (tracked) reads = (wants_gradient(*in.a) ? line.a_reads : 0u) | (wants_gradient(*in.b) ? line.b_reads : 0u);
    const bool overwritten = target && target->dtype() == dtype && target->shape() == in.shape;
    // What is read again of b must have the version it has before the write, so that the tape notices.
    const bool saves_target = target && (reads & Reads::b) && in.b->defined() && in.b->storage() == target->storage();
    const bool direct = overwritten && !saves_target && can_write_directly(*target, in.a, in.b);
    // What is read again of an overwritten a is a copy.
    const Tensor kept = target && (reads & Reads::a) ? copy_with_history(*in.a) : Tensor();
    Tensor out = direct ? *target : empty(in.shape, dtype, in.device);
    launch_elementwise(described(op, in, dtype, {p, q}, out));
    if (direct) wrote_in_place(out);
    if (!tracked) return out;
    const Numbers rest{!left.is_tensor(),
                       !right.is_tensor(),
                       in.number,
                       in.a->defined() ? in.a->shape() : Shape(),
                       in.b->defined() ? in.b->shape() : Shape(),
                       p,
                       q};
    const TensorArg recorded[] = {kept.defined() ? kept : *in.a, *in.b};
    attach(line.name, {&out, 1}, recorded, {.inputs = reads & Reads::ab, .outputs = reads & Reads::y ? 1u : 0u},
           [&line, rest](const Backward& back) { return gradients(line, rest, back); });
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
    check(!(integers && !b.is_tensor() && b.number().integer < 0),
          "pow: exponent: expected at least 0 for integers, got ", b.number().integer);
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

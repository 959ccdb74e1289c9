#include "vkml/autograd/grad_mode.h"
#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise_internal.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/reduce/reduce.h"

namespace vkml {
namespace {

void check_fits(std::string_view op, const Tensor& target, DType result) {
    check<DTypeError>(kind(result) <= kind(target.dtype()), op, ": expected a result that fits ", target.dtype(),
                      ", got ", result);
}

void check_distinct(std::string_view op, const Tensor& target) {
    check<Error>(!may_self_overlap(target.layout()), op,
                 ": expected a target whose elements are distinct, got an expanded one");
}

const Tensor& binary_(std::string_view name, BinaryOp op, const Tensor& target, const Arg& other) {
    const TensorArg right_side[] = {other.is_tensor() ? other.tensor() : target};
    check_in_place(name, target, right_side);
    const Tensor alias = alias_of(target);
    const DType dtype = promoted_dtype(name, target, other);
    check_fits(name, target, op == BinaryOp::div && !is_floating(dtype) ? default_dtype() : dtype);
    check_distinct(name, target);
    if (other.is_tensor()) {
        const Tensor& right = other.tensor();
        check(broadcast_shapes(name, target.shape(), right.shape()) == target.shape(), name,
              ": expected a shape that broadcasts to ", target.shape(), ", got ", right.shape());
        if (right.is(target)) return write_back(name, target, apply_binary(op, alias, alias, 0, 0, &target));
    }
    return write_back(name, target, apply_binary(op, alias, other, 0, 0, &target));
}

const Tensor& unary_(std::string_view name, UnaryOp op, const Tensor& target) {
    check_in_place(name, target);
    check_fits(name, target, unary_dtype(op, target.dtype()));
    check_distinct(name, target);
    return write_back(name, target, apply_unary(op, alias_of(target), 0.0, 0.0, &target));
}

}  // namespace

Tensor alias_of(const Tensor& target) {
    Tensor alias = target.view(target.layout());
    if (target.autograd()) alias.set_autograd(target.autograd());
    return alias;
}

Tensor copy_with_history(const Tensor& x) {
    Tensor copy = [&] {
        NoGrad off;
        return clone(x);
    }();
    if (x.autograd()) copy.set_autograd(x.autograd());
    return copy;
}

/// Under no_grad a tensor keeps the history it has, and a leaf its wish for a gradient.
void take_history(const Tensor& target, std::shared_ptr<AutogradMeta> history) {
    if (grad_enabled() && (history || !target.is_leaf())) target.set_autograd(std::move(history));
}

const Tensor& write_back(std::string_view op, const Tensor& target, const Tensor& result) {
    if (result.is(target)) return target;
    check_fits(op, target, result.dtype());
    check_distinct(op, target);
    const TensorArg written[] = {result};
    check_in_place(op, target, written);
    check(result.shape() == target.shape(), op, ": expected a result of shape ", target.shape(), ", got ",
          result.shape());
    const Tensor values = cast(result, target.dtype());
    copy_into(target, values);
    take_history(target, values.autograd());
    return target;
}

#define VKML_PUBLIC(name, op) \
    const Tensor& name(const Tensor& target, const Arg& other) { return binary_(#name, BinaryOp::op, target, other); }
VKML_PUBLIC(add_, add)
VKML_PUBLIC(sub_, sub)
VKML_PUBLIC(mul_, mul)
VKML_PUBLIC(div_, div)
VKML_PUBLIC(pow_, pow)
VKML_PUBLIC(floor_divide_, floor_divide)
VKML_PUBLIC(remainder_, remainder)
VKML_PUBLIC(bitwise_and_, bitwise_and)
VKML_PUBLIC(bitwise_or_, bitwise_or)
VKML_PUBLIC(bitwise_xor_, bitwise_xor)
#undef VKML_PUBLIC

#define VKML_PUBLIC(name, op) \
    const Tensor& name(const Tensor& target) { return unary_(#name, UnaryOp::op, target); }
VKML_PUBLIC(neg_, neg)
VKML_PUBLIC(abs_, abs)
VKML_PUBLIC(exp_, exp)
VKML_PUBLIC(log_, log)
VKML_PUBLIC(sqrt_, sqrt)
VKML_PUBLIC(rsqrt_, rsqrt)
VKML_PUBLIC(reciprocal_, reciprocal)
VKML_PUBLIC(square_, square)
VKML_PUBLIC(relu_, relu)
VKML_PUBLIC(sigmoid_, sigmoid)
VKML_PUBLIC(tanh_, tanh)
VKML_PUBLIC(sin_, sin)
VKML_PUBLIC(cos_, cos)
VKML_PUBLIC(round_, round)
VKML_PUBLIC(floor_, floor)
VKML_PUBLIC(ceil_, ceil)
VKML_PUBLIC(trunc_, trunc)
#undef VKML_PUBLIC

const Tensor& fill_(const Tensor& target, const Scalar& value) {
    check_in_place("fill_", target);
    fill_into(target, value);
    take_history(target, nullptr);  // nothing of what it was is left
    return target;
}

const Tensor& zero_(const Tensor& target) { return fill_(target, 0.0); }

const Tensor& copy_(const Tensor& target, const Tensor& source) {
    const TensorArg written[] = {source};
    check_in_place("copy_", target, written);
    const Tensor values = cast(to_device(source, target.device()), target.dtype());
    copy_into(target, values);
    const Shape shape = values.shape();
    take_history(target, nullptr);
    record("copy_", target, {values}, keep_nothing,
           [shape](const Backward& b) -> Grads { return {sum_to(b.grad(), shape)}; });
    return target;
}

}  // namespace vkml

#include "vkml/ops/elementwise/arg.h"

namespace vkml {
namespace {

/// `weak` joins `strong`: it counts only if its kind is higher.
DType join(DType strong, DType weak) { return kind(weak) > kind(strong) ? weak : strong; }

}  // namespace

const Tensor& Arg::none() {
    static const Tensor undefined;
    return undefined;
}

DType promoted_dtype(std::string_view op, const Arg& a, const Arg& b) {
    check(a.is_tensor() || b.is_tensor(), op, ": expected at least one tensor, got two numbers");
    if (!a.is_tensor()) return promoted_dtype(op, b, a);
    const DType left = a.tensor().dtype();
    if (!b.is_tensor()) return join(left, b.number().natural_dtype());
    const DType right = b.tensor().dtype();
    if (left == right) return left;
    const bool left_axes = a.tensor().ndim() > 0, right_axes = b.tensor().ndim() > 0;
    if (left_axes == right_axes) return promote(left, right);
    return left_axes ? join(left, right) : join(right, left);
}

}  // namespace vkml

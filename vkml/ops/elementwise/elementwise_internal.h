#pragma once
#include <limits>

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/elementwise/launch_internal.h"

/// What the operators of the .def files share, and those that only gradients use.
namespace vkml {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

/// The dtype of an operator's result. Throws DTypeError.
DType unary_dtype(UnaryOp op, DType input);
Tensor apply_unary(UnaryOp op, const Tensor& x, const Scalar& p = 0.0, const Scalar& q = 0.0,
                   const Tensor* target = nullptr);
Tensor apply_binary(BinaryOp op, const Arg& a, const Arg& b, double p = 0.0, double q = 0.0,
                    const Tensor* target = nullptr);

#define VKML_INTERNAL_UNARY(name)                                                       \
    inline Tensor name(const Tensor& x, const Scalar& p = 0.0, const Scalar& q = 0.0) { \
        return apply_unary(UnaryOp::name, x, p, q);                                     \
    }
VKML_INTERNAL_UNARY(inside)
VKML_INTERNAL_UNARY(strictly_inside)
VKML_INTERNAL_UNARY(leaky_relu_slope)
VKML_INTERNAL_UNARY(elu_slope)
VKML_INTERNAL_UNARY(elu_curvature)
#undef VKML_INTERNAL_UNARY

#define VKML_INTERNAL_BINARY(name) \
    inline Tensor name(const Arg& a, const Arg& b) { return apply_binary(BinaryOp::name, a, b); }
VKML_INTERNAL_BINARY(wins)
VKML_INTERNAL_BINARY(pow_slope)
VKML_INTERNAL_BINARY(pow_log)
VKML_INTERNAL_BINARY(relu_backward)
VKML_INTERNAL_BINARY(tanh_backward)
VKML_INTERNAL_BINARY(sigmoid_backward)
VKML_INTERNAL_BINARY(gelu_backward)
VKML_INTERNAL_BINARY(gelu_tanh_backward)
VKML_INTERNAL_BINARY(silu_backward)
VKML_INTERNAL_BINARY(mish_backward)
#undef VKML_INTERNAL_BINARY

/// Second derivatives, composed.
Tensor gelu_curvature(const Tensor& x);
Tensor gelu_tanh_curvature(const Tensor& x);
Tensor silu_curvature(const Tensor& x);
Tensor mish_curvature(const Tensor& x);

/// The target as it was: same memory, and the history it has now. What the tape remembers of an in-place operator's
/// input.
Tensor alias_of(const Tensor& target);
/// A copy of the values with the history of the tensor: what an in-place operator's gradient reads again.
Tensor copy_with_history(const Tensor& x);
/// Puts `result` into `target` with the tape following: what in-place operators end with when they could not write
/// directly.
const Tensor& write_back(std::string_view op, const Tensor& target, const Tensor& result);

/// Writes f(target as it was) into the target, checked and recorded.
template <class F>
const Tensor& replace_in_place(std::string_view op, const Tensor& target, const F& f) {
    check_in_place(op, target);
    return write_back(op, target,
                      f(grad_enabled() && target.requires_grad() ? copy_with_history(target) : alias_of(target)));
}

}  // namespace vkml

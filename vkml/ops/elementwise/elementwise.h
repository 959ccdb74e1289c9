#pragma once
#include <limits>
#include <optional>
#include <string_view>

#include "vkml/core/tensor.h"
#include "vkml/ops/elementwise/arg.h"

/// Operators that work element by element: the lines of unary.def, binary.def and compare.def. Binary ones broadcast
/// and promote; a number goes into the kernel's arguments. All raise ShapeError for shapes that do not broadcast,
/// DTypeError for a dtype they do not take, DeviceError for tensors on different devices.
namespace vkml {

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);  ///< 0 at NaN and -0
Tensor square(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);  ///< NaN stays
/// x times the normal distribution below x; approximate = "tanh" takes the older formula. Throws ShapeError for another
/// word.
Tensor gelu(const Tensor& x, std::string_view approximate = "none");
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x);
Tensor logsigmoid(const Tensor& x);
Tensor mish(const Tensor& x);
Tensor round(const Tensor& x);  ///< ties to even
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor elu(const Tensor& x, double alpha = 1.0);
Tensor hardtanh(const Tensor& x, double min_val = -1.0, double max_val = 1.0);
Tensor bitwise_not(const Tensor& x);

Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Arg& a, const Arg& b);
Tensor sub(const Arg& a, const Arg& b);
Tensor mul(const Arg& a, const Arg& b);
Tensor div(const Arg& a, const Arg& b);
/// a^b. A negative number as the exponent of integers: ShapeError.
Tensor pow(const Arg& a, const Arg& b);
/// The quotient rounded down, and what it leaves, as Python's // and %. An integer divisor of 0 raises Error at the
/// next read.
Tensor floor_divide(const Arg& a, const Arg& b);
Tensor remainder(const Arg& a, const Arg& b);
Tensor maximum(const Arg& a, const Arg& b);  ///< NaN from either side wins
Tensor minimum(const Arg& a, const Arg& b);
Tensor bitwise_and(const Arg& a, const Arg& b);
Tensor bitwise_or(const Arg& a, const Arg& b);
Tensor bitwise_xor(const Arg& a, const Arg& b);
/// a alpha + b beta in one dispatch, with the bits of the two products and the sum.
Tensor scaled_add(const Tensor& a, const Tensor& b, double alpha, double beta);

Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);
Tensor logical_xor(const Arg& a, const Arg& b);
Tensor logical_not(const Tensor& x);
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);

/// Change `target` and return it. The result keeps the target's shape and dtype: a shape that does not broadcast to it
/// is a ShapeError, a result of a higher kind (floats into integers) a DTypeError. The tape follows.
const Tensor& add_(const Tensor& target, const Arg& other);
const Tensor& sub_(const Tensor& target, const Arg& other);
const Tensor& mul_(const Tensor& target, const Arg& other);
const Tensor& div_(const Tensor& target, const Arg& other);
const Tensor& pow_(const Tensor& target, const Arg& other);
const Tensor& floor_divide_(const Tensor& target, const Arg& other);
const Tensor& remainder_(const Tensor& target, const Arg& other);
const Tensor& bitwise_and_(const Tensor& target, const Arg& other);
const Tensor& bitwise_or_(const Tensor& target, const Arg& other);
const Tensor& bitwise_xor_(const Tensor& target, const Arg& other);
const Tensor& neg_(const Tensor& target);
const Tensor& abs_(const Tensor& target);
const Tensor& exp_(const Tensor& target);
const Tensor& log_(const Tensor& target);
const Tensor& sqrt_(const Tensor& target);
const Tensor& rsqrt_(const Tensor& target);
const Tensor& reciprocal_(const Tensor& target);
const Tensor& square_(const Tensor& target);
const Tensor& relu_(const Tensor& target);
const Tensor& sigmoid_(const Tensor& target);
const Tensor& tanh_(const Tensor& target);
const Tensor& sin_(const Tensor& target);
const Tensor& cos_(const Tensor& target);
const Tensor& round_(const Tensor& target);
const Tensor& floor_(const Tensor& target);
const Tensor& ceil_(const Tensor& target);
const Tensor& trunc_(const Tensor& target);
const Tensor& zero_(const Tensor& target);
const Tensor& fill_(const Tensor& target, const Scalar& value);
/// Values of `source`, broadcast and cast; the gradient goes to the source.
const Tensor& copy_(const Tensor& target, const Tensor& source);

}  // namespace vkml

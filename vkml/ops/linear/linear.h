#pragma once
#include <string_view>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// input (..., in) times weight (out, in) transposed, plus bias (out), then the activation (none, relu, gelu, gelu_tanh
/// or silu), in one kernel on a GPU; where a gradient is wanted, gelu and silu are a second one. One floating dtype.
/// With in = 0 the bias remains. Throws ShapeError for sizes that do not fit or another word, DTypeError for dtypes
/// that differ.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, std::string_view activation = "none");

/// input beta + (a b) alpha for matrices a and b; input broadcasts to the product. beta = 0 ignores input, NaN and all.
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const Scalar& beta = 1, const Scalar& alpha = 1);

/// Batches of matrices: (b, n, k) times (b, k, m), without broadcasting.
Tensor bmm(const Tensor& input, const Tensor& other);
/// Inner product of two vectors of one length; rank 0.
Tensor dot(const Tensor& input, const Tensor& other);
/// (n) and (m) give (n, m).
Tensor outer(const Tensor& input, const Tensor& other);

}  // namespace vkml

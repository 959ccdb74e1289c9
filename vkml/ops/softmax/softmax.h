#pragma once
#include <cstdint>

#include "vkml/core/tensor.h"

namespace vkml {

/// exp(x - max) / sum(exp(x - max)) along dim. Same shape and dtype. Throws DTypeError unless floating, IndexError if
/// dim is out of range.
Tensor softmax(const Tensor& input, std::int64_t dim = -1);
/// (x - max) - log(sum(exp(x - max))) along dim; errors as softmax.
Tensor log_softmax(const Tensor& input, std::int64_t dim = -1);

/// Gradients from g = dL/dy and the result y, differentiable themselves: y (g - sum(g y)), and g - exp(y) sum(g).
Tensor softmax_backward(const Tensor& g, const Tensor& y, std::int64_t dim);
Tensor log_softmax_backward(const Tensor& g, const Tensor& y, std::int64_t dim);

}  // namespace vkml

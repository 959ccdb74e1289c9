#pragma once
#include <cstdint>
#include <string_view>

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

/// What log_softmax is made of: (x - peak) - log_sum, in f32 (f64 for f64), of input's shape without dim. A loss that
/// keeps these needs no tensor of the input's size. Not recorded; the rank is at least 1.
struct SoftmaxStatistics {
    Tensor peak, log_sum;
};
SoftmaxStatistics softmax_statistics(std::string_view op, const Tensor& input, int axis);

}  // namespace vkml

#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// The elements input[..., i, i + offset] of two axes, as the last axis: a differentiable view.
/// Throws IndexError for axes out of range, ShapeError for the same axis twice or a rank below 2.
Tensor diagonal(const Tensor& input, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1);

}  // namespace vkml

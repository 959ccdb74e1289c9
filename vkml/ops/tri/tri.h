#pragma once
#include "vkml/core/tensor.h"

/// Triangles of the last two axes; what lies outside is 0 by selection, NaN included. Any dtype, any batch axes.
/// Throws ShapeError below rank 2.
namespace vkml {

/// Keeps column - row >= diagonal.
Tensor triu(const Tensor& input, std::int64_t diagonal = 0);
/// Keeps column - row <= diagonal.
Tensor tril(const Tensor& input, std::int64_t diagonal = 0);

}  // namespace vkml

#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// Sums broadcast axes away so that the result has `shape`; the input itself if it has it already.
Tensor sum_to(const Tensor& input, const Shape& shape);

}  // namespace vkml

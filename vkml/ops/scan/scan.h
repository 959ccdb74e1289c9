#pragma once
#include <cstdint>

#include "vkml/core/tensor.h"

namespace vkml {

/// Sums of the elements up to and including each along dim. Integers and bool give int64, 16-bit floats are summed in
/// f32. NaN spreads to the right. Throws IndexError if dim is out of range.
Tensor cumsum(const Tensor& input, std::int64_t dim);

}  // namespace vkml

#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// The same values as another dtype; the tensor itself if it has it already. Floats round to nearest even, floats to
/// integers truncate and saturate (NaN gives 0), integers wrap, anything but 0 is true. Differentiable between floats.
Tensor cast(const Tensor& input, DType dtype);

}  // namespace vkml

#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// Copies `source` into `target` of the same shape and dtype in one dispatch, whatever the strides of either. They
/// share no memory. Neither recorded nor versioned: for operators that fill their own output.
void move_into(const Tensor& target, const Tensor& source);

}  // namespace vkml

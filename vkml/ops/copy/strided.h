#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// Copies between a packed and a strided tensor of one shape, dtype and device; `scatter` writes the strided one.
void copy_strided(const Tensor& packed, const Tensor& strided, bool scatter);

}  // namespace vkml

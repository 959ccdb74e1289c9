#pragma once
#include "vkml/core/tensor.h"

/// The operators the engine itself needs. They are defined in vkml/ops: declared here so that autograd includes nothing
/// above it.
namespace vkml {

Tensor add(const Tensor& a, const Tensor& b);
Tensor clone(const Tensor& input);
Tensor full(const Shape& shape, double value, DType dtype, Device device);

}  // namespace vkml

#pragma once
#include <cstdint>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// Tensors of one value.
namespace vkml {

/// A packed tensor whose every element is `value`. Throws as empty() does.
Tensor full(const Shape& shape, const Scalar& value, DType dtype, Device device);
Tensor full(const Shape& shape, double value, DType dtype, Device device);
inline Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0.0, dtype, device); }
inline Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1.0, dtype, device); }
inline Tensor zeros_like(const Tensor& t) { return full(t.shape(), 0.0, t.dtype(), t.device()); }
inline Tensor ones_like(const Tensor& t) { return full(t.shape(), 1.0, t.dtype(), t.device()); }
/// Overwrites every element, whatever the strides. Not recorded; raises the target's version.
void fill_into(const Tensor& target, const Scalar& value);

}  // namespace vkml

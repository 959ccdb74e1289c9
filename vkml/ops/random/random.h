#pragma once
#include "vkml/core/random.h"
#include "vkml/core/tensor.h"

/// Random tensors: element i depends on (seed, offset, i) alone, with the same bits on every device (randn: within
/// 2e-6).
namespace vkml {

/// Uniform in [0, 1), from 24 bits (f64: 53); 16-bit floats are the f32 value rounded. Throws DTypeError unless
/// floating.
Tensor rand(const Shape& shape, Draw draw, DType dtype, Device device);
/// Standard normal (Box-Muller). Throws DTypeError unless floating.
Tensor randn(const Shape& shape, Draw draw, DType dtype, Device device);
/// Uniform integers in [low, high). Throws ShapeError if the range is empty or does not fit the dtype, DTypeError
/// unless integer.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Draw draw, DType dtype, Device device);
/// The numbers 0 .. n - 1 (int64) in an order that the draw decides.
Tensor randperm(std::int64_t n, Draw draw, Device device);

}  // namespace vkml

#pragma once
#include <vector>

#include "vkml/core/tensor.h"

/// Work on many tensors at once, such as all gradients or all weights, in one or two dispatches however many there are.
/// The tensors of a list are floating-point and packed, of one dtype and on one device (ShapeError, DTypeError,
/// DeviceError). Nothing is recorded by autograd. The same bits on every run.
namespace vkml {

/// The root of the sum of all squares: 0-d, float32 (float64 for float64), summed in that dtype.
Tensor multi_norm(const std::vector<Tensor>& tensors);

/// Multiplies every element by a 0-d float32 (float64) tensor, in place. `found`, an int32 tensor of one element, or
/// undefined, becomes 1 if an element was not finite before.
void multi_scale_(const std::vector<Tensor>& tensors, const Tensor& factor, const Tensor& found);

/// targets += weight (sources - targets), in place, with a 0-d float32 (float64) weight.
void multi_lerp_(const std::vector<Tensor>& targets, const std::vector<Tensor>& sources, const Tensor& weight);

}  // namespace vkml

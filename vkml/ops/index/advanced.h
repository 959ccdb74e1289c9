#pragma once
#include <span>

#include "vkml/core/tensor.h"
#include "vkml/ops/index/basic.h"

/// What the in-place writes of x[...] share.
namespace vkml {

/// `value` broadcast to `shape`; leading axes of extent 1 too many are dropped. Throws ShapeError.
Tensor broadcast_value(const Tensor& value, const Shape& shape);
/// The same memory with the tensor's history so far: what a recorded in-place write has as its input.
Tensor history_of(const Tensor& t);
/// input[view][indices] = value: one write, recorded on `input` itself.
void mixed_put(const Tensor& input, const BasicIndex& view, std::span<const Tensor> indices, const Tensor& value);

}  // namespace vkml

#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// The tensor itself if it is packed, else a packed copy. Differentiable.
Tensor contiguous(const Tensor& input);
/// A packed copy with memory of its own. Differentiable.
Tensor clone(const Tensor& input);
/// Writes `source`, broadcast to the target's shape and of its dtype and device, into `target`; any strides on both
/// sides. The source is read before the write, so overlap is safe. Not recorded on the tape; raises the target's
/// version.
void copy_into(const Tensor& target, const Tensor& source);
/// The same values on another device; waits when one of the two is the host's view of the data. Differentiable.
Tensor to_device(const Tensor& input, Device device);

/// Host memory in and out: packed row-major values of the tensor's dtype. from_host copies and returns at once; to_host
/// waits.
Tensor from_host(const void* data, const Shape& shape, DType dtype, Device device);
void to_host(const Tensor& input, void* data);

}  // namespace vkml

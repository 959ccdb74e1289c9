#pragma once
#include <optional>

#include "vkml/core/tensor.h"

/// Copies with the elements in another order, or more than once. Any dtype, differentiable.
namespace vkml {

/// Reverses the axes listed.
Tensor flip(const Tensor& input, const Dims& dims);
/// Moves elements along dims by shifts, those that fall off come back at the other end. Without dims, along the
/// flattened tensor.
Tensor roll(const Tensor& input, const Dims& shifts, const Dims& dims = {});
/// The tensor side by side, repeats[i] times along axis i; one number per axis at least, more make new leading axes.
Tensor repeat(const Tensor& input, const Dims& repeats);
/// repeat(), but fewer numbers than axes count from the last axis.
Tensor tile(const Tensor& input, const Dims& repeats);
/// Every element `repeats` times in a row along dim; without dim, of the flattened tensor.
Tensor repeat_interleave(const Tensor& input, std::int64_t repeats, std::optional<std::int64_t> dim = {});
/// Element i of dim repeats[i] times; repeats is rank 1, int64 or int32. Waits for the device.
Tensor repeat_interleave(const Tensor& input, const Tensor& repeats, std::optional<std::int64_t> dim = {});

}  // namespace vkml

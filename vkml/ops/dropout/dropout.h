#pragma once
#include <cstdint>

#include "vkml/core/random.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// Keeps element i (row-major logical index) iff rand(shape, seed, offset)[i] >= p and multiplies it by 1 / (1 - p);
/// the others are 0 by selection. The input itself if p = 0 or not training. Backward makes the same mask again. Throws
/// DTypeError unless floating, ShapeError unless 0 <= p <= 1.
Tensor dropout(const Tensor& input, double p, std::uint64_t seed, std::uint64_t offset = 0, bool training = true);
/// The same with the default generator's next draw, which is taken only if there is something to drop.
Tensor dropout(const Tensor& input, double p);
/// A slice of a longer dropout: element i has the mask of element first + i.
Tensor dropout_slice(const Tensor& input, double p, Draw draw, std::uint64_t first);

}  // namespace vkml

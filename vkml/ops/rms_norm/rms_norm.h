#pragma once
#include <cstdint>

#include "vkml/core/tensor.h"

namespace vkml {

/// x / sqrt(mean(x^2) + eps) over the last `normalized_axes` axes, then * weight of those axes' shape, in the input's
/// dtype or f32. Throws DTypeError unless floating, ShapeError for the axes or the weight's shape.
Tensor rms_norm(const Tensor& input, std::int64_t normalized_axes = 1, double eps = 1e-5, const Tensor& weight = {});

}  // namespace vkml

#pragma once
#include <cstdint>

#include "vkml/core/tensor.h"

namespace vkml {

/// (x - mean) / sqrt(var + eps) over the last `normalized_axes` axes, biased variance, then * weight + bias of those
/// axes' shape, in the input's dtype or f32. Throws DTypeError unless floating, ShapeError for the axes or a
/// parameter's shape.
Tensor layer_norm(const Tensor& input, std::int64_t normalized_axes = 1, double eps = 1e-5, const Tensor& weight = {},
                  const Tensor& bias = {});

}  // namespace vkml

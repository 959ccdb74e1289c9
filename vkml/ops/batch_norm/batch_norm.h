#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// (x - mean) / sqrt(variance + eps) * weight + bias with the statistics given, channels on axis 1 of rank >= 2; the
/// four others have shape (C,), in the input's dtype or f32. Throws ShapeError, DTypeError.
Tensor batch_norm(const Tensor& input, const Tensor& mean, const Tensor& variance, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);

/// The same with the batch's own mean and biased variance, which come back beside the result (f32 for 16-bit input) and
/// through which the gradient flows. Stable for any mean. Throws ShapeError for one value per channel.
struct BatchNormTrained {
    Tensor y, mean, variance;
};
BatchNormTrained batch_norm_train(const Tensor& input, const Tensor& weight = {}, const Tensor& bias = {},
                                  double eps = 1e-5);

}  // namespace vkml

#pragma once
#include <string_view>

#include "vkml/core/int2.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// Cross-correlation of input (N, C, H, W) with weight (C_out, C / groups, kh, kw), zeros around the input, plus bias
/// (C_out). Floats of one dtype. The path (1x1 product, direct, implicit product, im2col) is a table; see
/// docs/architecture.md. Throws ShapeError, DTypeError.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, Int2 stride = 1, Int2 padding = 0,
              Int2 dilation = 1, std::int64_t groups = 1);
/// padding in words: "valid" is none; "same" keeps the input's size, an odd zero going to the end, and wants stride 1.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, std::string_view padding,
              Int2 dilation = 1, std::int64_t groups = 1);

/// The gradient of conv2d with regard to its input as an operator: input (N, C, H, W), weight (C, C_out / groups, kh,
/// kw), result (N, C_out, H', W') with H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
/// Throws ShapeError, DTypeError.
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, Int2 stride = 1,
                        Int2 padding = 0, Int2 output_padding = 0, std::int64_t groups = 1, Int2 dilation = 1);

}  // namespace vkml

#pragma once
#include <string_view>

#include "vkml/core/int2.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// Cross-correlation of input (N, C, H, W) with weight (C_out, C / groups, kh, kw), zeros around the input, plus bias
/// (C_out). Floats of one dtype. Lowered to im2col and one batched product; the columns of at most 256 MiB of samples
/// exist at a time. Throws ShapeError, DTypeError.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias = {}, Int2 stride = 1, Int2 padding = 0,
              Int2 dilation = 1, std::int64_t groups = 1);
/// padding in words: "valid" is none; "same" keeps the input's size, an odd zero going to the end, and wants stride 1.
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, Int2 stride, std::string_view padding,
              Int2 dilation = 1, std::int64_t groups = 1);

}  // namespace vkml

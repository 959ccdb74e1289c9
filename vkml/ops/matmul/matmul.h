#pragma once
#include "vkml/core/tensor.h"
#include "vkml/ops/matmul/precision.h"

namespace vkml {

/// Matrix product over the last axis of `input` and the last but one of `other`; leading axes are batch axes and
/// broadcast, a rank-1 operand is a row on the left and a column on the right. One dtype, any but bool; integers wrap.
/// Any strides are read in place. Throws ShapeError for ranks and sizes that do not fit, DTypeError for dtypes that
/// differ.
Tensor matmul(const Tensor& input, const Tensor& other);

}  // namespace vkml

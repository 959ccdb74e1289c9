#pragma once
#include "vkml/core/tensor.h"

/// Reductions over any set of axes: `dims` empty means all, negative axes count from the end, keepdim leaves them as 1.
/// Float sums are pairwise or better; 16-bit floats are summed in f32 and rounded once. IndexError for an axis out of range,
/// ShapeError for one named twice.
namespace vkml {

/// Integers and bool give int64.
Tensor sum(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// Floats only (DTypeError).
Tensor mean(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// Integers and bool give int64.
Tensor prod(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// The largest or smallest element; NaN wins, ties share the gradient. ShapeError if there is nothing to choose from.
Tensor amax(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& input, const Dims& dims = {}, bool keepdim = false);

/// Sums broadcast axes away so that the result has `shape`; the input itself if it has it already.
Tensor sum_to(const Tensor& input, const Shape& shape);

}  // namespace vkml

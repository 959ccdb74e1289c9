#pragma once
#include <cstdint>
#include <utility>

#include "vkml/core/tensor.h"

/// Reductions over any set of axes: `dims` empty means all, negative axes count from the end, keepdim leaves them as 1.
/// Float sums are pairwise or better; 16-bit floats are summed in f32 and rounded once. IndexError for an axis out of
/// range, ShapeError for one named twice.
namespace vkml {

/// Integers and bool give int64. In `exact` precision (ops/matmul/precision.h) the same bits on every device.
Tensor sum(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// Floats only (DTypeError). In `exact` precision the exact sum, divided with one rounding.
Tensor mean(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// Integers and bool give int64.
Tensor prod(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// The largest or smallest element; NaN wins, ties share the gradient. ShapeError if there is nothing to choose from.
Tensor amax(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
inline Tensor max(const Tensor& input) { return amax(input); }
inline Tensor min(const Tensor& input) { return amin(input); }

/// Values and their int64 positions along dim: the first of equals, the first NaN. The gradient goes to that position.
std::pair<Tensor, Tensor> max(const Tensor& input, std::int64_t dim, bool keepdim = false);
std::pair<Tensor, Tensor> min(const Tensor& input, std::int64_t dim, bool keepdim = false);
/// int64 positions along dim, or in the flattened input without one. bool is refused (DTypeError).
Tensor argmax(const Tensor& input);
Tensor argmax(const Tensor& input, std::int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& input);
Tensor argmin(const Tensor& input, std::int64_t dim, bool keepdim = false);

/// Sum of squared deviations from the mean over max(0, n - correction), and its root. Floats only. Stable for any mean.
Tensor var(const Tensor& input, const Dims& dims = {}, double correction = 1, bool keepdim = false);
Tensor std(const Tensor& input, const Dims& dims = {}, double correction = 1, bool keepdim = false);
/// log(sum(exp(x))), shifted by the maximum. Floats only.
Tensor logsumexp(const Tensor& input, const Dims& dims = {}, bool keepdim = false);

/// Whether all, or any, elements are other than 0; NaN is. bool.
Tensor all(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
Tensor any(const Tensor& input, const Dims& dims = {}, bool keepdim = false);
/// (sum |x|^p)^(1/p); p = infinity: the largest magnitude, -infinity: the smallest, 0: how many are other than 0.
/// Floats only.
Tensor norm(const Tensor& input, double p = 2, const Dims& dims = {}, bool keepdim = false);

/// Sums broadcast axes away so that the result has `shape`; the input itself if it has it already.
Tensor sum_to(const Tensor& input, const Shape& shape);

}  // namespace vkml

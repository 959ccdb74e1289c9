#pragma once
#include <optional>

#include "vkml/core/tensor.h"
#include "vkml/ops/sort/unique.h"

/// Sorting along one axis, on every dtype: always stable, NaN counts as the largest value.
namespace vkml {

struct Sorted {
    Tensor values;
    Tensor indices;  // int64
};

/// Ascending, or descending with equal elements still in the order of their indices. The values are differentiable.
Sorted sort(const Tensor& input, std::int64_t dim = -1, bool descending = false);
Tensor argsort(const Tensor& input, std::int64_t dim = -1, bool descending = false);
/// The k largest (or smallest) in order; among equals the lower index comes first. Throws ShapeError if k exceeds the
/// extent.
Sorted topk(const Tensor& input, std::int64_t k, std::int64_t dim = -1, bool largest = true);

}  // namespace vkml

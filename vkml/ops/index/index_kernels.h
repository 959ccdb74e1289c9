#pragma once
#include <limits>
#include <string_view>

#include "vkml/core/tensor.h"
#include "vkml/runtime/kernel.h"

/// The operators behind index.h. An index here is int64 or int32; `skip` is a row, kNoRow or kNoSkip.
namespace vkml {

/// What checked (wrapped, in range) indices use for one that was out of range.
inline constexpr std::int64_t kNoRow = -1;
/// For `skip`: every index has to be a row. Kernels skip nothing below kNoRow, so no index means this by accident.
inline constexpr std::int64_t kNoSkip = std::numeric_limits<std::int64_t>::min();

void check_index_dtype(std::string_view op, const Tensor& index);

/// Rows of `input` along dim at a rank-1 index; rows of zeros at `skip`. Differentiable.
Tensor select_rows(std::string_view op, const Tensor& input, int dim, const Tensor& index, std::int64_t skip);
/// `base`, taken over if `owned`, else a copy of it, with the rows of `source` along dim added at a rank-1 index,
/// except at `skip`. Differentiable in both.
Tensor add_rows(std::string_view op, const Tensor& base, int dim, const Tensor& index, const Tensor& source,
                std::int64_t skip, bool owned = false);
/// target[.., index, ..] = source along dim, in place; index packed int64 with kNoRow allowed. Not recorded.
void put_rows(const Tensor& target, int dim, const Tensor& index, const Tensor& source);
/// Wrapped and checked indices of several axes as one int64 index into the axes merged, packed, of the broadcast shape.
Tensor linear_index(std::string_view op, std::span<const Tensor> indices, const Shape& extents, const Shape& shape);

}  // namespace vkml

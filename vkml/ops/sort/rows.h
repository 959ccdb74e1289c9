#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

/// A tensor as (outer, length, inner) around one axis, with one stride each.
struct Rows {
    std::int64_t outer = 1, length = 1, inner = 1;
    std::int64_t outer_stride = 0, row_stride = 0, inner_stride = 0;
};

/// Fills `rows` and returns true if the axes before and after `axis` merge into one each; a packed tensor's always do.
bool as_rows(const Tensor& t, int axis, Rows& rows);
/// The same for several axes in the middle: first .. last - 1 become one.
bool as_rows(const Tensor& t, int first, int last, Rows& rows);

}  // namespace vkml

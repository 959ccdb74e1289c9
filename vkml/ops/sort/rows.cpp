#include "vkml/ops/sort/rows.h"

namespace vkml {
namespace {

/// Merges the axes first .. last - 1 into one; false if they do not lie regularly.
bool merge(const Tensor& t, int first, int last, std::int64_t& extent, std::int64_t& stride) {
    Shape shape;
    Strides strides[1];
    for (int i = first; i < last; i++) {
        shape.push_back(t.shape()[i]);
        strides[0].push_back(t.strides()[i]);
    }
    extent = numel(shape);
    const Collapsed merged = collapse(shape, strides);
    stride = extent > 1 ? merged.strides[0][merged.shape.size() - 1] : 1;
    return merged.shape.size() == 1 || extent <= 1;
}

}  // namespace

bool as_rows(const Tensor& t, int axis, Rows& rows) { return as_rows(t, axis, axis + 1, rows); }

bool as_rows(const Tensor& t, int first, int last, Rows& rows) {
    const bool outer = merge(t, 0, first, rows.outer, rows.outer_stride);
    const bool length = merge(t, first, last, rows.length, rows.row_stride);
    const bool inner = merge(t, last, t.ndim(), rows.inner, rows.inner_stride);
    return outer && length && inner;
}

}  // namespace vkml

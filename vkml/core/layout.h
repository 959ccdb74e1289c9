#pragma once
#include <cstdint>
#include <span>

#include "vkml/core/shape.h"

/// How a tensor's elements lie in its storage: shape, strides and offset, all in elements.
namespace vkml {

struct Layout {
    Shape shape;
    Strides strides;
    std::int64_t offset = 0;

    Layout() = default;
    /// Packed row-major at offset 0.
    explicit Layout(const Shape& shape);
    Layout(const Shape& shape, const Strides& strides, std::int64_t offset)
        : shape(shape), strides(strides), offset(offset) {}

    int rank() const { return shape.size(); }
    /// Packed row-major; strides of extents 0 and 1 do not matter.
    bool is_contiguous() const;
};

/// Row-major strides of a packed tensor.
Strides packed_strides(const Shape& shape);

/// The layout read as if it had `shape`: extents of 1 and missing leading axes get stride 0. The shapes must broadcast.
Layout expand(const Layout& layout, const Shape& shape);
Layout permute(const Layout& layout, const Dims& axes);
/// Elements start, start + step, ... below stop along axis; 0 <= start <= extent, step >= 1.
Layout slice(const Layout& layout, int axis, std::int64_t start, std::int64_t stop, std::int64_t step);
/// Drops `axis` at `index`.
Layout select(const Layout& layout, int axis, std::int64_t index);
/// Strides that show the same elements as `shape`, if there are any: fills `out` and returns true.
bool view_as(const Layout& layout, const Shape& shape, Layout& out);

/// Several layouts of one shape with axes merged wherever every one of them allows it, and extents of 1 dropped:
/// what a strided kernel loops over. At least one axis remains. Axes keep their order.
struct Collapsed {
    Shape shape;
    Strides strides[4];
};
Collapsed collapse(const Shape& shape, std::span<const Strides> strides);

/// True when two different indices can reach one element (a stride 0 on an extent above 1, or axes that overlap).
bool may_self_overlap(const Layout& layout);

}  // namespace vkml

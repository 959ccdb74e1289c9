#include "vkml/core/layout.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "vkml/core/error.h"

namespace vkml {

Strides packed_strides(const Shape& shape) {
    Strides strides = Dims::filled(shape.size(), 1);
    for (int i = shape.size() - 2; i >= 0; i--) strides[i] = strides[i + 1] * std::max<std::int64_t>(shape[i + 1], 1);
    return strides;
}

Layout::Layout(const Shape& s) : shape(s), strides(packed_strides(s)) {}

bool Layout::is_contiguous() const {
    std::int64_t expected = 1;
    bool packed = true;
    for (int i = rank() - 1; i >= 0; i--) {
        if (shape[i] == 0) return true;
        if (shape[i] == 1) continue;
        packed &= strides[i] == expected;
        expected *= shape[i];
    }
    return packed;
}

Layout expand(const Layout& layout, const Shape& shape) {
    Layout out(shape, Dims::filled(shape.size(), 0), layout.offset);
    const int lead = shape.size() - layout.rank();
    VKML_ASSERT(lead >= 0);
    for (int i = 0; i < layout.rank(); i++)
        if (layout.shape[i] == shape[lead + i]) out.strides[lead + i] = layout.strides[i];
    return out;
}

Layout permute(const Layout& layout, const Dims& axes) {
    Layout out = layout;
    for (int i = 0; i < axes.size(); i++) {
        out.shape[i] = layout.shape[static_cast<int>(axes[i])];
        out.strides[i] = layout.strides[static_cast<int>(axes[i])];
    }
    return out;
}

Layout slice(const Layout& layout, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
    Layout out = layout;
    out.shape[axis] = stop > start ? (stop - start + step - 1) / step : 0;
    if (out.shape[axis] > 0) out.offset += start * layout.strides[axis];
    out.strides[axis] = layout.strides[axis] * step;
    return out;
}

Layout select(const Layout& layout, int axis, std::int64_t index) {
    Layout out = layout;
    out.offset += index * layout.strides[axis];
    out.shape.erase(axis);
    out.strides.erase(axis);
    return out;
}

bool view_as(const Layout& layout, const Shape& shape, Layout& out) {
    out = Layout(shape);
    out.offset = layout.offset;
    if (numel(shape) == 0) return true;
    const Strides one[] = {layout.strides};
    const Collapsed runs = collapse(layout.shape, one);
    int axis = shape.size() - 1;
    for (int run = runs.shape.size() - 1; run >= 0; run--) {
        std::int64_t left = runs.shape[run], stride = runs.strides[0][run];
        while (axis >= 0 && left % shape[axis] == 0 && (left > 1 || shape[axis] == 1)) {
            out.strides[axis] = stride;
            stride *= shape[axis];
            left /= shape[axis];
            axis--;
        }
        if (left != 1) return false;
    }
    return axis < 0;
}

Collapsed collapse(const Shape& shape, std::span<const Strides> strides) {
    Collapsed out;
    const int n = static_cast<int>(strides.size());
    VKML_ASSERT(n <= 4);
    for (int axis = 0; axis < shape.size(); axis++) {
        if (shape[axis] == 1) continue;
        const int last = out.shape.size() - 1;
        bool merge = last >= 0;
        for (int k = 0; merge && k < n; k++) merge = out.strides[k][last] == strides[k][axis] * shape[axis];
        if (!merge) {
            out.shape.push_back(shape[axis]);
            for (int k = 0; k < n; k++) out.strides[k].push_back(strides[k][axis]);
            continue;
        }
        out.shape[last] *= shape[axis];
        for (int k = 0; k < n; k++) out.strides[k][last] = strides[k][axis];
    }
    if (out.shape.empty()) {
        out.shape.push_back(1);
        for (int k = 0; k < n; k++) out.strides[k].push_back(1);
    }
    return out;
}

bool may_self_overlap(const Layout& layout) {
    // Stride and extent of every axis; unused places sort to the end and reach nothing.
    std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank> axes;
    axes.fill({std::numeric_limits<std::int64_t>::max(), 1});
    for (int i = 0; i < layout.rank(); i++) {
        if (layout.shape[i] == 0) return false;
        if (layout.shape[i] > 1) axes[static_cast<std::size_t>(i)] = {std::abs(layout.strides[i]), layout.shape[i]};
    }
    std::ranges::sort(axes);
    std::int64_t reach = 0;  // the furthest element the smaller strides touch
    for (const auto& [stride, extent] : axes) {
        if (extent == 1) break;
        if (stride <= reach) return true;
        reach += stride * (extent - 1);
    }
    return false;
}

}  // namespace vkml

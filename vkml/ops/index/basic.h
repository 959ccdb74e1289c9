#pragma once
#include <vector>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// x[...] with integers, slices, None and Ellipsis: a view.
namespace vkml {

/// Steps from a layout to the one shown, each at an axis of the result so far.
struct BasicIndex {
    enum class Kind : std::uint8_t { select, slice, insert };
    struct Step {
        Kind kind;
        int axis;
        std::int64_t start = 0, stop = 0, step = 1;
    };
    std::vector<Step> steps;

    Layout apply(const Layout& layout) const;
};

/// The view, recorded as one.
Tensor basic_get(const Tensor& input, const BasicIndex& index);
/// The view = value in place, with index_put's rules. The source is read before the write.
void basic_put(const Tensor& input, const BasicIndex& index, const Tensor& value);

}  // namespace vkml

#pragma once
#include <vector>

#include "vkml/core/tensor.h"

/// Other shapes of the same elements. All are views of the input's memory (reshape copies when no strides can show the
/// new shape), all are differentiable, all take negative axes. Axes out of range throw IndexError, shapes that do not
/// fit ShapeError.
namespace vkml {

/// One extent may be -1: it is what remains. A view if possible, else a packed copy.
Tensor reshape(const Tensor& input, const Shape& shape);
/// Extents of 1, and axes missing in front, repeat with stride 0; -1 keeps an extent.
Tensor expand(const Tensor& input, const Shape& shape);
inline Tensor broadcast_to(const Tensor& input, const Shape& shape) { return expand(input, shape); }
Tensor permute(const Tensor& input, const Dims& axes);
Tensor transpose(const Tensor& input, std::int64_t a, std::int64_t b);
/// The axis at `from` moves to `to`, the others keep their order; several at once pairwise.
Tensor movedim(const Tensor& input, const Dims& from, const Dims& to);
/// Drops every axis of extent 1, or those listed that have it.
Tensor squeeze(const Tensor& input);
Tensor squeeze(const Tensor& input, const Dims& dims);
Tensor unsqueeze(const Tensor& input, std::int64_t dim);
/// Merges the axes start to end, both included.
Tensor flatten(const Tensor& input, std::int64_t start = 0, std::int64_t end = -1);
/// Splits one axis into `sizes`; one of them may be -1.
Tensor unflatten(const Tensor& input, std::int64_t dim, const Shape& sizes);
/// Elements start, start + step, ... below stop along dim; start and stop wrap and clamp as a Python slice, step >= 1.
Tensor slice(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
/// Drops `dim` at `index`, which may be negative.
Tensor select(const Tensor& input, std::int64_t dim, std::int64_t index);
/// `length` elements along dim from `start`; no clamping.
Tensor narrow(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t length);
/// The same values without a history; shares the memory.
Tensor detach(const Tensor& input);

/// A view with any layout inside the input's storage, e.g. a slice of several axes at once: recorded so that its
/// gradient lands at the elements it shows. `layout` must reach no element twice.
Tensor view_with_layout(const Tensor& input, const Layout& layout);

}  // namespace vkml

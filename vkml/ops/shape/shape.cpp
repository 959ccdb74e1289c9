#include "vkml/ops/shape/shape.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/diagonal.h"

namespace vkml {
namespace {

/// Replaces the one -1 in `shape` by what remains of `count`.
Shape infer(std::string_view op, const Shape& wanted, std::int64_t count, const Shape& given) {
    Shape shape = wanted;
    int unknown = -1;
    std::int64_t known = 1;
    for (int i = 0; i < shape.size(); i++) {
        if (shape[i] == -1) {
            check(unknown < 0, op, ": expected at most one extent of -1, got ", wanted);
            unknown = i;
            continue;
        }
        check(shape[i] >= 0, op, ": expected extents >= 0 or -1, got ", wanted);
        check(!__builtin_mul_overflow(known, shape[i], &known), op, ": expected fewer than 2^63 elements, got ",
              wanted);
    }
    if (unknown >= 0) {
        check(known != 0 && count % known == 0, op, ": expected a shape of ", count, " elements, got ", wanted, " for ",
              given);
        shape[unknown] = count / known;
    } else {
        check(known == count, op, ": expected a shape of ", count, " elements, got ", wanted, " for ", given);
    }
    return shape;
}

/// The elements of `gradient` at `layout` inside packed zeros of `shape`.
Tensor scatter_to_layout(const Tensor& gradient, const Shape& shape, const Layout& layout) {
    Tensor out = zeros(shape, gradient.dtype(), gradient.device());
    if (gradient.numel() > 0) copy_into(out.view(layout), gradient);
    return record("scatter_to_layout", out, {gradient}, keep_nothing,
                  [layout](const Backward& b) -> Grads { return {view_with_layout(b.grad(), layout)}; });
}

/// A view whose gradient lands at `packed_layout`: where the view would lie if the input were packed at offset 0.
Tensor recorded_slice(const Tensor& input, const Layout& layout, const Layout& packed_layout) {
    return record("slice", input.view(layout), {input}, view_of_input,
                  [shape = input.shape(), packed_layout](const Backward& b) -> Grads {
                      return {scatter_to_layout(b.grad(), shape, packed_layout)};
                  });
}

/// The diagonal of two axes, as the last one; it starts `row` and `column` elements inside.
Layout diagonal_of(const Layout& layout, int first, int second, std::int64_t row, std::int64_t column,
                   std::int64_t count) {
    Layout out;
    out.offset = layout.offset;
    if (count > 0) out.offset += row * layout.strides[first] + column * layout.strides[second];
    for (int i = 0; i < layout.rank(); i++) {
        if (i == first || i == second) continue;
        out.shape.push_back(layout.shape[i]);
        out.strides.push_back(layout.strides[i]);
    }
    out.shape.push_back(count);
    out.strides.push_back(layout.strides[first] + layout.strides[second]);
    return out;
}

}  // namespace

Tensor reshape(const Tensor& input, const Shape& wanted) {
    const Shape shape = infer("reshape", wanted, input.numel(), input.shape());
    Layout layout;
    if (!view_as(input.layout(), shape, layout)) return reshape(contiguous(input), shape);
    return record("reshape", input.view(layout), {input}, view_of_input,
                  [from = input.shape()](const Backward& b) -> Grads { return {reshape(b.grad(), from)}; });
}

Tensor expand(const Tensor& input, const Shape& wanted) {
    const int lead = wanted.size() - input.ndim();
    check(lead >= 0, "expand: expected rank >= ", input.ndim(), ", got shape ", wanted);
    Shape shape = wanted;
    for (int i = 0; i < input.ndim(); i++) {
        if (shape[lead + i] == -1) shape[lead + i] = input.shape()[i];
        check(input.shape()[i] == shape[lead + i] || input.shape()[i] == 1, "expand: expected a shape that ",
              input.shape(), " broadcasts to, got ", wanted);
    }
    for (std::int64_t extent : shape) check(extent >= 0, "expand: expected extents >= 0 on new axes, got ", wanted);
    if (shape == input.shape()) return input;
    return record("expand", input.view(expand(input.layout(), shape)), {input}, view_of_input,
                  [from = input.shape()](const Backward& b) -> Grads { return {sum_to(b.grad(), from)}; });
}

Tensor permute(const Tensor& input, const Dims& axes) {
    check(axes.size() == input.ndim(), "permute: expected ", input.ndim(), " axes, got ", axes);
    const Dims order = axes.empty() ? axes : wrap_dims("permute", axes, input.ndim());
    Dims inverse = order;
    for (int i = 0; i < order.size(); i++) inverse[static_cast<int>(order[i])] = i;
    return record("permute", input.view(permute(input.layout(), order)), {input}, view_of_input,
                  [inverse](const Backward& b) -> Grads { return {permute(b.grad(), inverse)}; });
}

Tensor transpose(const Tensor& input, std::int64_t a, std::int64_t b) {
    const int first = wrap_dim("transpose", a, input.ndim()), second = wrap_dim("transpose", b, input.ndim());
    if (input.ndim() == 0) return input;
    Dims axes;
    for (int i = 0; i < input.ndim(); i++) axes.push_back(i);
    std::swap(axes[first], axes[second]);
    return permute(input, axes);
}

Tensor movedim(const Tensor& input, const Dims& from, const Dims& to) {
    check(from.size() == to.size(), "movedim: expected as many targets as sources, got ", from, " and ", to);
    if (from.empty()) return input;
    const Dims source = wrap_dims("movedim", from, input.ndim()), target = wrap_dims("movedim", to, input.ndim());
    Dims axes = Dims::filled(input.ndim(), -1);
    for (int i = 0; i < source.size(); i++) axes[static_cast<int>(target[i])] = source[i];
    std::int64_t next = 0;
    for (std::int64_t& axis : axes) {
        if (axis >= 0) continue;
        while (std::ranges::find(source, next) != source.end()) next++;
        axis = next++;
    }
    return permute(input, axes);
}

Tensor squeeze(const Tensor& input) {
    Shape shape;
    for (std::int64_t extent : input.shape())
        if (extent != 1) shape.push_back(extent);
    return reshape(input, shape);
}

Tensor squeeze(const Tensor& input, const Dims& dims) {
    if (dims.empty()) return input;
    const Dims axes = wrap_dims("squeeze", dims, input.ndim());
    Shape shape;
    for (int i = 0; i < input.ndim(); i++)
        if (input.shape()[i] != 1 || std::ranges::find(axes, i) == axes.end()) shape.push_back(input.shape()[i]);
    return reshape(input, shape);
}

Tensor unsqueeze(const Tensor& input, std::int64_t dim) {
    Shape shape = input.shape();
    shape.insert(wrap_dim("unsqueeze", dim, input.ndim() + 1), 1);
    return reshape(input, shape);
}

Tensor flatten(const Tensor& input, std::int64_t start, std::int64_t end) {
    const int first = wrap_dim("flatten", start, input.ndim()), last = wrap_dim("flatten", end, input.ndim());
    if (input.ndim() == 0) return reshape(input, {1});
    check(first <= last, "flatten: expected start <= end, got ", start, " and ", end);
    Shape shape;
    for (int i = 0; i < input.ndim(); i++) {
        if (i <= first || i > last)
            shape.push_back(input.shape()[i]);
        else
            shape[first] *= input.shape()[i];
    }
    return reshape(input, shape);
}

Tensor unflatten(const Tensor& input, std::int64_t dim, const Shape& sizes) {
    const int axis = wrap_dim("unflatten", dim, input.ndim());
    check(!sizes.empty() && input.ndim() > 0, "unflatten: expected at least one size and rank >= 1, got ", sizes,
          " for ", input.shape());
    const Shape parts = infer("unflatten", sizes, input.shape()[axis], input.shape());
    Shape shape;
    for (int i = 0; i < input.ndim(); i++) {
        if (i != axis)
            shape.push_back(input.shape()[i]);
        else
            for (std::int64_t part : parts) shape.push_back(part);
    }
    return reshape(input, shape);
}

Tensor slice(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
    const int axis = wrap_dim("slice", dim, input.ndim());
    check(input.ndim() > 0, "slice: expected rank >= 1, got ()");
    check(step >= 1, "slice: expected step >= 1, got ", step);
    const std::int64_t extent = input.shape()[axis];
    const auto clamp = [extent](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + extent : i, 0, extent); };
    start = clamp(start);
    stop = clamp(stop);
    return recorded_slice(input, slice(input.layout(), axis, start, stop, step),
                          slice(Layout(input.shape()), axis, start, stop, step));
}

Tensor select(const Tensor& input, std::int64_t dim, std::int64_t index) {
    const int axis = wrap_dim("select", dim, input.ndim());
    check(input.ndim() > 0, "select: expected rank >= 1, got ()");
    const std::int64_t extent = input.shape()[axis];
    check<IndexError>(index >= -extent && index < extent, "select: expected an index in [", -extent, ", ", extent,
                      "), got ", index);
    if (index < 0) index += extent;
    return recorded_slice(input, select(input.layout(), axis, index), select(Layout(input.shape()), axis, index));
}

Tensor narrow(const Tensor& input, std::int64_t dim, std::int64_t start, std::int64_t length) {
    const int axis = wrap_dim("narrow", dim, input.ndim());
    check(input.ndim() > 0, "narrow: expected rank >= 1, got ()");
    const std::int64_t extent = input.shape()[axis];
    check<IndexError>(start >= -extent && start <= extent, "narrow: expected start in [", -extent, ", ", extent,
                      "], got ", start);
    if (start < 0) start += extent;
    check(length >= 0 && length <= extent - start, "narrow: expected a length in [0, ", extent - start, "], got ",
          length);
    return slice(input, axis, start, start + length);
}

Tensor diagonal(const Tensor& input, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
    check(input.ndim() >= 2, "diagonal: expected rank >= 2, got ", input.shape());
    const int first = wrap_dim("diagonal", dim1, input.ndim()), second = wrap_dim("diagonal", dim2, input.ndim());
    check(first != second, "diagonal: expected two axes, got ", dim1, " and ", dim2);
    const std::int64_t rows = input.shape()[first], columns = input.shape()[second];
    offset = std::clamp(offset, -rows, columns);
    const std::int64_t row = std::max<std::int64_t>(-offset, 0), column = std::max<std::int64_t>(offset, 0),
                       count = std::min(rows - row, columns - column);
    return recorded_slice(input, diagonal_of(input.layout(), first, second, row, column, count),
                          diagonal_of(Layout(input.shape()), first, second, row, column, count));
}

Tensor detach(const Tensor& input) { return input.view(input.layout()); }

Tensor view_with_layout(const Tensor& input, const Layout& layout) {
    // Only packed inputs can be addressed by a free layout; others are read through a packed copy.
    const Tensor packed = contiguous(input);
    Layout placed = layout;
    placed.offset += packed.offset();
    return recorded_slice(packed, placed, layout);
}

}  // namespace vkml

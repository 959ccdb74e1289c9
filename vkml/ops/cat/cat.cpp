#include "vkml/ops/cat/cat.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/cat/move.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

/// A tensor of shape (0,) takes no part: it joins anything, as torch has it.
bool is_legacy_empty(const Tensor& t) { return t.ndim() == 1 && t.shape()[0] == 0; }

DType result_dtype(std::span<const Tensor> tensors) {
    DType dtype = tensors[0].dtype();
    for (const Tensor& t : tensors) dtype = promote(dtype, t.dtype());
    return dtype;
}

void check_devices(std::string_view op, std::span<const Tensor> tensors) {
    for (const Tensor& t : tensors) common_device(op, {&tensors[0], &t});
}

/// One output filled piece by piece; `pieces` have its dtype.
Tensor join(const Shape& shape, int axis, std::span<const Tensor> pieces) {
    Tensor out = empty(shape, pieces[0].dtype(), pieces[0].device());
    std::int64_t at = 0;
    for (const Tensor& piece : pieces) {
        if (piece.ndim() != out.ndim()) continue;  // legacy empty
        const std::int64_t length = piece.shape()[axis];
        move_into(out.view(slice(out.layout(), axis, at, at + length, 1)), piece);
        at += length;
    }
    return out;
}

Shape joined_shape(std::span<const Tensor> tensors, std::int64_t dim, int& axis) {
    const auto first = std::ranges::find_if_not(tensors, is_legacy_empty);
    const Tensor& like = first == tensors.end() ? tensors[0] : *first;
    axis = wrap_dim("cat", dim, like.ndim());
    Shape shape = like.shape();
    shape[axis] = 0;
    for (std::size_t i = 0; i < tensors.size(); i++) {
        const Tensor& t = tensors[i];
        if (is_legacy_empty(t)) continue;
        check(t.ndim() == like.ndim(), "cat: tensors: expected rank ", like.ndim(), ", got ", t.shape(),
              " at position ", i);
        for (int k = 0; k < shape.size(); k++)
            check(k == axis || t.shape()[k] == shape[k], "cat: tensors: expected shapes that agree outside dim ", axis,
                  ", got ", like.shape(), " and ", t.shape());
        shape[axis] += t.shape()[axis];
    }
    return shape;
}

/// The gradients of a split's pieces, one after the other; zeros for a piece nobody used.
Tensor joined_gradients(const Backward& b, const Shape& shape, std::span<const std::int64_t> lengths, int axis) {
    std::vector<Tensor> pieces(lengths.size());
    const Tensor* given = nullptr;
    for (std::size_t i = 0; i < lengths.size(); i++)
        if ((pieces[i] = b.grad(static_cast<int>(i))).defined()) given = &pieces[i];
    for (std::size_t i = 0; i < lengths.size(); i++) {
        if (pieces[i].defined()) continue;
        Shape piece = shape;
        piece[axis] = lengths[i];
        pieces[i] = expand(full(Shape::filled(shape.size(), 1), 0.0, given->dtype(), given->device()), piece);
    }
    return cat(pieces, axis);
}

}  // namespace

Tensor cat(std::span<const Tensor> tensors, std::int64_t dim) {
    check(!tensors.empty(), "cat: tensors: expected at least one tensor, got none");
    check_devices("cat", tensors);
    for (const Tensor& t : tensors) check(t.ndim() > 0, "cat: tensors: expected rank >= 1, got ", t.shape());
    int axis = 0;
    const Shape shape = joined_shape(tensors, dim, axis);
    const DType dtype = result_dtype(tensors);
    std::vector<Tensor> pieces;
    for (const Tensor& t : tensors) pieces.push_back(cast(t, dtype));
    std::vector<std::int64_t> lengths;
    for (const Tensor& t : pieces)
        lengths.push_back(t.ndim() == shape.size() && !is_legacy_empty(t) ? t.shape()[axis] : -1);
    const std::vector<TensorArg> inputs(pieces.begin(), pieces.end());
    return record("cat", {join(shape, axis, pieces)}, inputs, keep_nothing,
                  [lengths, axis](const Backward& b) -> Grads {
                      Grads grads(lengths.size());
                      std::int64_t at = 0;
                      for (std::size_t i = 0; i < lengths.size(); i++) {
                          if (lengths[i] < 0) {
                              if (b.needs(static_cast<int>(i)))
                                  grads[i] = empty({0}, b.grad().dtype(), b.grad().device());
                              continue;
                          }
                          if (b.needs(static_cast<int>(i))) grads[i] = narrow(b.grad(), axis, at, lengths[i]);
                          at += lengths[i];
                      }
                      return grads;
                  })[0];
}

Tensor stack(std::span<const Tensor> tensors, std::int64_t dim) {
    check(!tensors.empty(), "stack: tensors: expected at least one tensor, got none");
    const Tensor& like = tensors[0];
    const int axis = wrap_dim("stack", dim, like.ndim() + 1);
    std::vector<Tensor> pieces;
    for (const Tensor& t : tensors) {
        check(t.shape() == like.shape(), "stack: tensors: expected one shape, got ", like.shape(), " and ", t.shape());
        pieces.push_back(unsqueeze(t, axis));
    }
    return cat(pieces, axis);
}

std::vector<Tensor> split(const Tensor& input, std::int64_t size, std::int64_t dim) {
    check(input.ndim() > 0, "split: expected rank >= 1, got ", input.shape());
    const int axis = wrap_dim("split", dim, input.ndim());
    const std::int64_t extent = input.shape()[axis];
    check(size > 0 || (size == 0 && extent == 0), "split: size: expected a number >= 1, got ", size);
    std::vector<std::int64_t> sizes;
    for (std::int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
    if (sizes.empty()) sizes.push_back(0);
    return split(input, sizes, axis);
}

std::vector<Tensor> split(const Tensor& input, std::span<const std::int64_t> sizes, std::int64_t dim) {
    check(input.ndim() > 0, "split: expected rank >= 1, got ", input.shape());
    const int axis = wrap_dim("split", dim, input.ndim());
    const std::int64_t extent = input.shape()[axis];
    std::int64_t sum = 0;
    for (std::int64_t size : sizes) {
        check(size >= 0 && size <= extent, "split: sizes: expected sizes that add up to ", extent, ", got one of ",
              size);
        sum += size;
    }
    check(sum == extent, "split: sizes: expected sizes that add up to ", extent, ", got a sum of ", sum);
    std::vector<Tensor> out;
    std::int64_t at = 0;
    for (std::int64_t size : sizes) {
        out.push_back(input.view(slice(input.layout(), axis, at, at + size, 1)));
        at += size;
    }
    const TensorArg inputs[] = {input};
    // One node for all pieces: their gradients are joined once, where a node each would fill and add whole tensors.
    return record("split", out, inputs, view_of_input,
                  [shape = input.shape(), lengths = std::vector(sizes.begin(), sizes.end()), axis](const Backward& b) {
                      return Grads{joined_gradients(b, shape, lengths, axis)};
                  });
}

std::vector<Tensor> chunk(const Tensor& input, std::int64_t chunks, std::int64_t dim) {
    check(input.ndim() > 0, "chunk: expected rank >= 1, got ", input.shape());
    check(chunks >= 1, "chunk: chunks: expected a number >= 1, got ", chunks);
    const std::int64_t extent = input.shape()[wrap_dim("chunk", dim, input.ndim())];
    if (extent == 0) {
        const std::vector<std::int64_t> none(static_cast<std::size_t>(chunks), 0);
        return split(input, none, dim);
    }
    return split(input, (extent + chunks - 1) / chunks, dim);
}

}  // namespace vkml

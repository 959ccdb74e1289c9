#include "vkml/ops/rearrange/rearrange.h"

#include <vector>

#include "vkml/autograd/node.h"
#include "vkml/ops/cat/cat.h"
#include "vkml/ops/cat/move.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

Tensor roll_axis(const Tensor& input, std::int64_t shift, int axis) {
    const std::int64_t extent = input.shape()[axis];
    if (extent == 0) return input;
    const std::int64_t by = (shift % extent + extent) % extent;
    if (by == 0) return input;
    const Tensor parts[] = {narrow(input, axis, extent - by, by), narrow(input, axis, 0, extent - by)};
    return cat(parts, axis);
}

/// Copies along an axis as a stride-0 view of one rank more; at rank 8 by joining.
Tensor repeat_axis(const Tensor& input, std::int64_t times, int axis) {
    if (times == 1) return input;
    Shape shape = input.shape();
    if (input.ndim() == kMaxRank && times > 0) {
        const std::vector<Tensor> copies(static_cast<std::size_t>(times), input);
        return cat(copies, axis);
    }
    shape[axis] *= times;
    if (numel(shape) == 0) return reshape(narrow(input, axis, 0, 0), shape);
    Shape wide = input.shape();
    wide.insert(axis, times);
    return reshape(expand(unsqueeze(input, axis), wide), shape);
}

Tensor own(const Tensor& result, const Tensor& input) {
    return result.storage() == input.storage() && result.numel() > 0 ? clone(result) : result;
}

}  // namespace

Tensor flip(const Tensor& input, const Dims& dims) {
    const Dims axes = dims.empty() ? dims : wrap_dims("flip", dims, input.ndim());
    Layout layout = input.layout();
    Tensor out = empty_like(input);
    if (input.numel() > 0) {
        for (std::int64_t i : axes) {
            const int axis = static_cast<int>(i);
            if (axis >= layout.rank()) continue;  // rank 0
            layout.offset += (layout.shape[axis] - 1) * layout.strides[axis];
            layout.strides[axis] = -layout.strides[axis];
        }
        move_into(out, input.view(layout));
    }
    return record("flip", out, {input}, keep_nothing,
                  [axes](const Backward& b) -> Grads { return {flip(b.grad(), axes)}; });
}

Tensor roll(const Tensor& input, const Dims& shifts, const Dims& dims) {
    if (dims.empty()) {
        check(shifts.size() == 1, "roll: shifts: expected one number without dims, got ", shifts);
        return own(reshape(roll_axis(reshape(input, {-1}), shifts[0], 0), input.shape()), input);
    }
    check(shifts.size() == dims.size(), "roll: shifts: expected one number per dim, got ", shifts, " for ", dims);
    Tensor out = input;
    for (int i = 0; i < dims.size(); i++) {
        const int axis = wrap_dim("roll", dims[i], input.ndim());
        if (input.ndim() > 0) out = roll_axis(out, shifts[i], axis);
    }
    return own(out, input);
}

Tensor repeat(const Tensor& input, const Dims& repeats) {
    check(repeats.size() >= input.ndim(), "repeat: repeats: expected at least ", input.ndim(), " numbers, got ",
          repeats);
    for (std::int64_t times : repeats) check(times >= 0, "repeat: repeats: expected numbers >= 0, got ", repeats);
    Shape shape = input.shape();
    while (shape.size() < repeats.size()) shape.insert(0, 1);
    Tensor out = reshape(input, shape);
    // From the last axis on, so that the early copies are small.
    for (int axis = shape.size() - 1; axis >= 0; axis--) out = repeat_axis(out, repeats[axis], axis);
    return own(out, input);
}

Tensor tile(const Tensor& input, const Dims& repeats) {
    Dims all = repeats;
    while (all.size() < input.ndim()) all.insert(0, 1);
    return repeat(input, all);
}

Tensor repeat_interleave(const Tensor& input, std::int64_t repeats, std::optional<std::int64_t> dim) {
    check(repeats >= 0, "repeat_interleave: repeats: expected a number >= 0, got ", repeats);
    const Tensor x = dim && input.ndim() > 0 ? input : reshape(input, {-1});
    const int axis = dim ? wrap_dim("repeat_interleave", *dim, input.ndim()) : 0;
    Shape wide = x.shape(), shape = x.shape();
    shape[axis] *= repeats;
    if (x.ndim() == kMaxRank) {  // no room for another axis: merge the others
        Shape merged{1, x.shape()[axis], 1};
        for (int i = 0; i < x.ndim(); i++)
            if (i != axis) merged[i < axis ? 0 : 2] *= x.shape()[i];
        return reshape(repeat_interleave(reshape(x, merged), repeats, 1), shape);
    }
    wide.insert(axis + 1, repeats);
    return own(reshape(expand(unsqueeze(x, axis + 1), wide), shape), input);
}

Tensor repeat_interleave(const Tensor& input, const Tensor& repeats, std::optional<std::int64_t> dim) {
    common_device("repeat_interleave", {&input, &repeats});
    check<DTypeError>(repeats.dtype() == DType::i64 || repeats.dtype() == DType::i32,
                      "repeat_interleave: repeats: expected int64 or int32, got ", repeats.dtype());
    const Tensor x = dim && input.ndim() > 0 ? input : reshape(input, {-1});
    const int axis = dim ? wrap_dim("repeat_interleave", *dim, input.ndim()) : 0;
    const std::int64_t extent = x.shape()[axis];
    check(repeats.ndim() <= 1 && (repeats.numel() == extent || repeats.numel() == 1),
          "repeat_interleave: repeats: expected shape (", extent, ",), got ", repeats.shape());
    const bool wide = repeats.dtype() == DType::i64;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(repeats.numel())), places;
    std::vector<std::int32_t> narrow_counts(counts.size());
    to_host(repeats, wide ? static_cast<void*>(counts.data()) : narrow_counts.data());
    if (!wide) counts.assign(narrow_counts.begin(), narrow_counts.end());
    for (std::int64_t i = 0; i < extent; i++) {
        const std::int64_t count = counts[counts.size() == 1 ? 0 : static_cast<std::size_t>(i)];
        check(count >= 0, "repeat_interleave: repeats: expected numbers >= 0, got ", count);
        places.insert(places.end(), static_cast<std::size_t>(count), i);
    }
    const auto total = static_cast<std::int64_t>(places.size());
    return index_select(x, axis, from_host(places.data(), {total}, DType::i64, x.device()));
}

}  // namespace vkml

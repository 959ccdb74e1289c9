#include <algorithm>
#include <cstring>
#include <vector>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/advanced.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

/// What a set of index tensors does to a tensor of one shape: permute by `order`, merge `count` axes from `first` on,
/// take the rows `rows` of the merged axis, show them as `batch`.
struct Plan {
    BasicIndex view;  // applied first
    Dims order;       // empty: the axes stay
    int first = 0, count = 0;
    Shape batch;
    Tensor rows;  // int64, rank 1, kNoRow where an index was out of range
};

/// Bool masks become the coordinates of their true elements.
std::vector<Tensor> without_masks(std::span<const Tensor> indices, const Shape& shape) {
    std::vector<Tensor> out;
    for (const Tensor& index : indices) {
        if (!index.defined() || index.dtype() != DType::boolean) {
            if (index.defined()) check_index_dtype("index", index);
            out.push_back(index);
            continue;
        }
        const int at = static_cast<int>(out.size());
        for (int i = 0; i < index.ndim(); i++)
            check<IndexError>(at + i < shape.size() && index.shape()[i] == shape[at + i],
                              "index: expected a mask that fits ", shape, " from axis ", at, " on, got shape ",
                              index.shape());
        const Tensor places = nonzero(index);
        for (int i = 0; i < index.ndim(); i++) out.push_back(places.view(select(places.layout(), 1, i)));
    }
    check<IndexError>(static_cast<int>(out.size()) <= shape.size(), "index: expected at most ", shape.size(),
                      " indices, got ", out.size());
    return out;
}

Plan plan_for(const Tensor& input, std::span<const Tensor> given) {
    const std::vector<Tensor> indices = without_masks(given, input.shape());
    Plan plan;
    std::vector<Tensor> used;
    std::vector<int> axes;
    Shape extents;
    for (int i = 0; i < static_cast<int>(indices.size()); i++) {
        const Tensor& index = indices[static_cast<std::size_t>(i)];
        if (!index.defined()) continue;
        common_device("index", {&input, &index});
        plan.batch = used.empty() ? index.shape() : broadcast_shapes("index", plan.batch, index.shape());
        used.push_back(index);
        axes.push_back(i);
        extents.push_back(input.shape()[i]);
    }
    check(!used.empty(), "index: expected at least one index, got none");
    plan.count = static_cast<int>(axes.size());
    plan.first = axes.front();
    if (axes.back() - axes.front() + 1 != plan.count) {
        plan.first = 0;
        for (int axis : axes) plan.order.push_back(axis);
        for (int i = 0; i < input.ndim(); i++)
            if (std::ranges::find(axes, i) == axes.end()) plan.order.push_back(i);
    }
    plan.rows = reshape(linear_index("index", used, extents, plan.batch), {-1});
    return plan;
}

Shape merged(const Shape& shape, const Plan& plan) {
    Shape out;
    for (int i = 0; i < plan.first; i++) out.push_back(shape[i]);
    std::int64_t rows = 1;
    for (int i = 0; i < plan.count; i++) rows *= shape[plan.first + i];
    out.push_back(rows);
    for (int i = plan.first + plan.count; i < shape.size(); i++) out.push_back(shape[i]);
    return out;
}

/// `shape` has the rows on one axis; the answer has the batch there.
Shape with_batch(const Shape& shape, const Plan& plan) {
    Shape out;
    for (int i = 0; i < plan.first; i++) out.push_back(shape[i]);
    for (std::int64_t extent : plan.batch) out.push_back(extent);
    for (int i = plan.first + 1; i < shape.size(); i++) out.push_back(shape[i]);
    return out;
}

Tensor get(const Tensor& input, const Plan& plan) {
    const Tensor shown = plan.view.steps.empty() ? input : basic_get(input, plan.view);
    const Tensor x = plan.order.empty() ? shown : permute(shown, plan.order);
    const Tensor rows = select_rows("index", reshape(x, merged(x.shape(), plan)), plan.first, plan.rows, kNoRow);
    return reshape(rows, with_batch(rows.shape(), plan));
}

/// The shape of get() on a tensor of this shape.
Shape result_shape(const Tensor& input, const Plan& plan) {
    const Layout shown = plan.view.apply(input.layout());
    const Shape shape = plan.order.empty() ? shown.shape : permute(shown, plan.order).shape;
    return with_batch(merged(shape, plan), plan);
}

void write(const Tensor& target, const Plan& plan, const Tensor& value) {
    const Layout shown = plan.view.apply(target.layout());
    const Tensor x = target.view(plan.order.empty() ? shown : permute(shown, plan.order));
    const Shape rows = merged(x.shape(), plan);
    Tensor source = value.view(value.layout());
    if (source.storage() == target.storage()) source = clone(source);
    Shape narrow = rows;
    narrow[plan.first] = plan.rows.numel();
    source = reshape(source, narrow);
    Layout view;
    if (view_as(x.layout(), rows, view)) return put_rows(x.view(view), plan.first, plan.rows, source);
    const Tensor through = clone(x);
    put_rows(reshape(through, rows), plan.first, plan.rows, source);
    copy_into(x, through);
}

void put(const Tensor& input, const Plan& plan, const Tensor& value) {
    check<DTypeError>(value.dtype() == input.dtype(), "index_put: value: expected ", input.dtype(), ", got ",
                      value.dtype());
    common_device("index_put", {&input, &value});
    const Shape shape = result_shape(input, plan);
    const Tensor wide = broadcast_value(value, shape);
    check<Error>(!may_self_overlap(input.layout()),
                 "index_put: expected a target whose elements are distinct, got an expanded one");
    const TensorArg written[] = {value};
    check_in_place("index_put", input, written);
    const Tensor before = history_of(input);
    if (input.numel() > 0 && wide.numel() > 0) {
        GradMode off(false);
        write(input, plan, wide);
    }
    wrote_in_place(input);
    record("index_put", input, {before, wide}, keep_nothing, [plan](const Backward& b) -> Grads {
        Grads grads(2);
        if (b.needs(0)) {
            grads[0] = clone(b.grad());
            put(grads[0], plan, zeros({}, b.grad().dtype(), b.grad().device()));
        }
        if (b.needs(1)) grads[1] = get(b.grad(), plan);
        return grads;
    });
}

}  // namespace

Tensor broadcast_value(const Tensor& value, const Shape& shape) {
    // Leading axes of extent 1 may go, as in NumPy.
    Tensor v = value;
    while (v.ndim() > shape.size() && v.shape()[0] == 1) v = select(v, 0, 0);
    const bool fits = v.ndim() <= shape.size() && broadcast_shapes("index", shape, v.shape()) == shape;
    check(fits, "index: value: expected a shape that broadcasts to ", shape, ", got ", value.shape());
    return expand(v, shape);
}

Tensor history_of(const Tensor& t) {
    Tensor before = t.view(t.layout());
    before.set_autograd(t.autograd());
    return before;
}

Tensor index_get(const Tensor& input, std::span<const Tensor> indices) { return get(input, plan_for(input, indices)); }

void index_put(const Tensor& input, std::span<const Tensor> indices, const Tensor& value) {
    put(input, plan_for(input, indices), value);
}

void mixed_put(const Tensor& input, const BasicIndex& view, std::span<const Tensor> indices, const Tensor& value) {
    Plan plan = plan_for(input.view(view.apply(input.layout())), indices);
    plan.view = view;
    put(input, plan, value);
}

Tensor masked_select(const Tensor& input, const Tensor& mask) {
    check<DTypeError>(mask.dtype() == DType::boolean, "masked_select: mask: expected bool, got ", mask.dtype());
    common_device("masked_select", {&input, &mask});
    const Shape shape = broadcast_shapes("masked_select", input.shape(), mask.shape());
    const Tensor places[] = {reshape(expand(mask, shape), {-1})};
    return index_get(reshape(expand(input, shape), {-1}), places);
}

}  // namespace vkml

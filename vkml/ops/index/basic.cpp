#include "vkml/ops/index/basic.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/advanced.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

/// Zeros of `shape` with the gradient where the index points.
Tensor basic_scatter(const Tensor& gradient, const Shape& shape, const BasicIndex& index) {
    Tensor out = zeros(shape, gradient.dtype(), gradient.device());
    if (gradient.numel() > 0) copy_into(out.view(index.apply(out.layout())), gradient);
    return record("getitem_backward", out, {gradient}, keep_nothing,
                  [index](const Backward& b) -> Grads { return {basic_get(b.grad(), index)}; });
}

}  // namespace

Layout BasicIndex::apply(const Layout& layout) const {
    Layout out = layout;
    for (const Step& s : steps) {
        switch (s.kind) {
            case Kind::select:
                out = select(out, s.axis, s.start);
                break;
            case Kind::slice:
                out = slice(out, s.axis, s.start, s.stop, s.step);
                break;
            case Kind::insert:
                out.shape.insert(s.axis, 1);
                out.strides.insert(s.axis, 0);
                break;
        }
    }
    return out;
}

Tensor basic_get(const Tensor& input, const BasicIndex& index) {
    return record(
        "getitem", input.view(index.apply(input.layout())), {input}, view_of_input,
        [shape = input.shape(), index](const Backward& b) -> Grads { return {basic_scatter(b.grad(), shape, index)}; });
}

void basic_put(const Tensor& input, const BasicIndex& index, const Tensor& value) {
    check<DTypeError>(value.dtype() == input.dtype(), "setitem: value: expected ", input.dtype(), ", got ",
                      value.dtype());
    common_device("setitem", {&input, &value});
    const Layout shown = index.apply(input.layout());
    const Tensor wide = broadcast_value(value, shown.shape);
    check<Error>(!may_self_overlap(shown),
                 "setitem: expected a target whose elements are distinct, got an expanded one");
    const TensorArg written[] = {value};
    check_in_place("setitem", input, written);
    const Tensor before = history_of(input);
    copy_into(input.view(shown), wide);  // raises the version
    record("setitem", input, {before, wide}, keep_nothing, [index](const Backward& b) -> Grads {
        Grads grads(2);
        if (b.needs(0)) {
            grads[0] = clone(b.grad());
            basic_put(grads[0], index, zeros({}, b.grad().dtype(), b.grad().device()));
        }
        if (b.needs(1)) grads[1] = basic_get(b.grad(), index);
        return grads;
    });
}

}  // namespace vkml

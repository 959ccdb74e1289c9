#include "vkml/ops/reduce/reduce.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/reduce/plain.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

Tensor launch_plain(std::string_view op, const Tensor& input, const Dims& axes, bool keepdim, Plain operation,
                    PlainFinish finish = PlainFinish::none, double divisor = 1) {
    const bool widens = !is_floating(input.dtype()) && operation != Plain::largest && operation != Plain::smallest;
    Tensor out = empty(reduced_shape(input.shape(), axes, keepdim), widens ? DType::i64 : input.dtype(), input.device());
    const Fold fold{.op = op, .rows = plain_rows, .columns = plain_columns, .operation = static_cast<std::uint32_t>(operation),
                    .finish = static_cast<std::uint32_t>(finish), .state_bytes = itemsize(accumulator(input.dtype())),
                    .keeps_state = widens, .divisor = accumulator_bits(input.dtype(), divisor)};
    reduce(fold, input, axes, out);
    return out;
}

/// A result, or its gradient, read as if the reduced axes were still there.
Tensor spread(const Tensor& reduced, const Shape& shape, const Dims& axes) {
    return expand(reshape(reduced, reduced_shape(shape, axes, true)), shape);
}

}  // namespace

Tensor sum(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("sum", dims, input.ndim());
    return record("sum", launch_plain("sum", input, axes, keepdim, Plain::sum), {input}, keep_nothing,
                  [axes, shape = input.shape()](const Backward& b) -> Grads { return {spread(b.grad(), shape, axes)}; });
}

Tensor sum_to(const Tensor& input, const Shape& shape) {
    if (input.shape() == shape) return input;
    const int lead = input.ndim() - shape.size();
    check(lead >= 0 && broadcast_shapes("sum_to", input.shape(), shape) == input.shape(), "sum_to: expected a shape that broadcasts to ",
          input.shape(), ", got ", shape);
    Dims axes;
    for (int i = 0; i < input.ndim(); i++)
        if (i < lead || (shape[i - lead] == 1 && input.shape()[i] != 1)) axes.push_back(i);
    const Tensor total = axes.empty() ? input : sum(input, axes, true);
    return reshape(total, shape);
}

}  // namespace vkml

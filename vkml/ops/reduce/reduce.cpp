#include "vkml/ops/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "vkml/autograd/node.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/spread.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

struct PlainForm {
    std::string_view op;
    Plain operation;
    PlainFinish finish = PlainFinish::none;
    double divisor = 1;
};

Tensor launch_plain(const PlainForm& form, const Tensor& input, const Dims& axes, bool keepdim) {
    const bool chooses = form.operation == Plain::largest || form.operation == Plain::smallest;
    const bool widens = !is_floating(input.dtype()) && !chooses;
    Tensor out = empty(reduced_shape(input.shape(), axes, keepdim), widens ? DType::i64 : input.dtype(), input.device());
    Fold fold{.op = form.op, .rows = plain_rows, .columns = plain_columns, .operation = static_cast<std::uint32_t>(form.operation),
              .finish = static_cast<std::uint32_t>(form.finish), .state_bytes = itemsize(accumulator(input.dtype())),
              .keeps_state = widens, .divisor = accumulator_bits(input.dtype(), form.divisor)};
    reduce(fold, input, axes, out);
    return out;
}

/// A sum or a mean in the order that `exact` asks for.
Tensor launch_exact(const PlainForm& form, const Tensor& input, const Dims& axes, bool keepdim) {
    Tensor out = empty(reduced_shape(input.shape(), axes, keepdim), input.dtype(), input.device());
    const Fold fold{.op = form.op, .rows = exact_sum, .columns = exact_sum, .finish = static_cast<std::uint32_t>(form.finish),
                    .state_bytes = itemsize(accumulator(input.dtype())), .ordered = true,
                    .divisor = accumulator_bits(input.dtype(), form.divisor)};
    reduce_exactly(fold, input, axes, out);
    return out;
}

Tensor launch_sum(const PlainForm& form, const Tensor& input, const Dims& axes, bool keepdim) {
    const bool exact = is_floating(input.dtype()) && float32_matmul_precision() == Precision::exact;
    return exact ? launch_exact(form, input, axes, keepdim) : launch_plain(form, input, axes, keepdim);
}

}  // namespace

Tensor sum(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("sum", dims, input.ndim());
    return record("sum", launch_sum({"sum", Plain::sum}, input, axes, keepdim), {input}, keep_nothing,
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

Tensor mean(const Tensor& input, const Dims& dims, bool keepdim) {
    check<DTypeError>(is_floating(input.dtype()), "mean: expected a floating-point tensor, got ", input.dtype());
    const Dims axes = wrap_dims("mean", dims, input.ndim());
    const auto n = static_cast<double>(reduced_count(input.shape(), axes));
    return launch_sum({"mean", Plain::sum, PlainFinish::divide, n}, input, axes, keepdim);
}

Tensor prod(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("prod", dims, input.ndim());
    return launch_plain({"prod", Plain::product}, input, axes, keepdim);
}

namespace {

Tensor extreme(std::string_view op, Plain operation, const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims(op, dims, input.ndim());
    check(reduced_count(input.shape(), axes) > 0, op, ": expected at least one element to choose from, got shape ", input.shape());
    return launch_plain({op, operation}, input, axes, keepdim);
}

}  // namespace

Tensor amax(const Tensor& input, const Dims& dims, bool keepdim) { return extreme("amax", Plain::largest, input, dims, keepdim); }
Tensor amin(const Tensor& input, const Dims& dims, bool keepdim) { return extreme("amin", Plain::smallest, input, dims, keepdim); }

}  // namespace vkml

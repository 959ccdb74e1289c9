#include "vkml/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/cat/cat.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/spread.h"
#include "vkml/ops/select/select.h"
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
    Tensor out =
        empty(reduced_shape(input.shape(), axes, keepdim), widens ? DType::i64 : input.dtype(), input.device());
    Fold fold{.op = form.op,
              .rows = plain_rows,
              .columns = plain_columns,
              .operation = static_cast<std::uint32_t>(form.operation),
              .finish = static_cast<std::uint32_t>(form.finish),
              .state_bytes = itemsize(accumulator(input.dtype())),
              .keeps_state = widens,
              .divisor = accumulator_bits(input.dtype(), form.divisor)};
    reduce(fold, input, axes, out);
    return out;
}

/// A sum or a mean in the order that `exact` asks for.
Tensor launch_exact(const PlainForm& form, const Tensor& input, const Dims& axes, bool keepdim) {
    Tensor out = empty(reduced_shape(input.shape(), axes, keepdim), input.dtype(), input.device());
    const Fold fold{.op = form.op,
                    .rows = exact_sum,
                    .columns = exact_sum,
                    .finish = static_cast<std::uint32_t>(form.finish),
                    .state_bytes = itemsize(accumulator(input.dtype())),
                    .ordered = true,
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
    return record(
        "sum", launch_sum({"sum", Plain::sum}, input, axes, keepdim), {input}, keep_nothing,
        [axes, shape = input.shape()](const Backward& b) -> Grads { return {spread(b.grad(), shape, axes)}; });
}

Tensor sum_to(const Tensor& input, const Shape& shape) {
    if (input.shape() == shape) return input;
    const int lead = input.ndim() - shape.size();
    check(lead >= 0 && broadcast_shapes("sum_to", input.shape(), shape) == input.shape(),
          "sum_to: expected a shape that broadcasts to ", input.shape(), ", got ", shape);
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
    return record("mean", launch_sum({"mean", Plain::sum, PlainFinish::divide, n}, input, axes, keepdim), {input},
                  keep_nothing, [axes, n, shape = input.shape()](const Backward& b) -> Grads {
                      return {spread(div(b.grad(), n), shape, axes)};
                  });
}

namespace {

/// For each element of a row of x (M, n) the product of the others: pairs are multiplied up and the rest handed down.
/// No division, so zeros do no harm at any order of derivative.
Tensor product_of_others(const Tensor& x) {
    const std::int64_t n = x.shape()[1], half = n / 2;
    if (n <= 1) return ones_like(x);
    const Tensor a = narrow(x, 1, 0, half), b = narrow(x, 1, half, half), rest = narrow(x, 1, 2 * half, n - 2 * half);
    const Tensor pairs[] = {mul(a, b), rest};
    const Tensor others = product_of_others(n > 2 * half ? cat(pairs, 1) : pairs[0]);
    const Tensor shared = narrow(others, 1, 0, half);
    const Tensor parts[] = {mul(shared, b), mul(shared, a), narrow(others, 1, half, n - 2 * half)};
    return cat(std::span(parts, n > 2 * half ? 3 : 2), 1);
}

/// The reduced axes as the last one: a matrix, and the way back.
Tensor to_rows(const Tensor& x, const Dims& order, std::int64_t n) {
    return reshape(permute(x, order), {n > 0 ? x.numel() / n : 0, n});
}

Tensor from_rows(const Tensor& rows, const Dims& order, const Shape& shape) {
    Shape permuted;
    Dims back = order;
    for (int i = 0; i < order.size(); i++) {
        permuted.push_back(shape[static_cast<int>(order[i])]);
        back[static_cast<int>(order[i])] = i;
    }
    return permute(reshape(rows, permuted), back);
}

Tensor prod_backward(const Tensor& g, const Tensor& x, const Dims& axes) {
    if (x.numel() == 0 || x.ndim() == 0) return x.ndim() == 0 ? g : zeros_like(x);
    Dims order;
    for (int i = 0; i < x.ndim(); i++)
        if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
    for (std::int64_t axis : axes) order.push_back(axis);
    const Tensor others = product_of_others(to_rows(widened(x), order, reduced_count(x.shape(), axes)));
    return cast(mul(spread(widened(g), x.shape(), axes), from_rows(others, order, x.shape())), x.dtype());
}

}  // namespace

Tensor prod(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("prod", dims, input.ndim());
    return record("prod", launch_plain({"prod", Plain::product}, input, axes, keepdim), {input}, keep_inputs(0),
                  [axes](const Backward& b) -> Grads { return {prod_backward(b.grad(), b.input(0), axes)}; });
}

namespace {

Tensor extreme(std::string_view op, Plain operation, const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims(op, dims, input.ndim());
    check(reduced_count(input.shape(), axes) > 0, op, ": expected at least one element to choose from, got shape ",
          input.shape());
    const Keep keep{.inputs = 1, .outputs = 1};
    return record(op, launch_plain({op, operation}, input, axes, keepdim), {input}, keep,
                  [axes](const Backward& b) -> Grads {
                      const Tensor x = detach(b.input(0)), y = detach(b.output());
                      // NaN equals nothing; where one won, all NaN share.
                      const Tensor chosen = logical_or(equal(x, spread(y, x.shape(), axes)), isnan(x));
                      const Tensor ties = cast(sum(chosen, axes, true), accumulator(x.dtype()));
                      const Tensor g = cast(div(widened(reshape(b.grad(), ties.shape())), ties), x.dtype());
                      return {where(chosen, expand(g, x.shape()), 0.0)};
                  });
}

/// all and any as the smallest and largest of truths.
Tensor truth(std::string_view op, Plain operation, const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims(op, dims, input.ndim());
    if (reduced_count(input.shape(), axes) == 0)
        return full(reduced_shape(input.shape(), axes, keepdim), Scalar(operation == Plain::smallest), DType::boolean,
                    input.device());
    const Tensor truths = input.dtype() == DType::boolean ? input : not_equal(input, 0);
    return launch_plain({op, operation}, truths, axes, keepdim);
}

}  // namespace

Tensor amax(const Tensor& input, const Dims& dims, bool keepdim) {
    return extreme("amax", Plain::largest, input, dims, keepdim);
}
Tensor amin(const Tensor& input, const Dims& dims, bool keepdim) {
    return extreme("amin", Plain::smallest, input, dims, keepdim);
}
Tensor all(const Tensor& input, const Dims& dims, bool keepdim) {
    return truth("all", Plain::smallest, input, dims, keepdim);
}
Tensor any(const Tensor& input, const Dims& dims, bool keepdim) {
    return truth("any", Plain::largest, input, dims, keepdim);
}

namespace {

Tensor euclidean(const Tensor& input, const Dims& axes, bool keepdim) {
    const Keep keep{.inputs = 1, .outputs = 1};
    return record("norm", launch_plain({"norm", Plain::squares, PlainFinish::root}, input, axes, keepdim), {input},
                  keep, [axes](const Backward& b) -> Grads {
                      const Tensor x = b.input(0), y = widened(b.output());
                      const Tensor slope = masked_fill(div(widened(b.grad()), y), equal(detach(y), 0), 0.0);
                      return {cast(mul(widened(x), spread(slope, x.shape(), axes)), x.dtype())};
                  });
}

Tensor taxicab(const Tensor& input, const Dims& axes, bool keepdim) {
    return record("norm", launch_plain({"norm", Plain::magnitudes}, input, axes, keepdim), {input}, keep_inputs(0),
                  [axes](const Backward& b) -> Grads {
                      const Tensor x = b.input(0);
                      return {mul(spread(b.grad(), x.shape(), axes), sign(x))};
                  });
}

}  // namespace

Tensor norm(const Tensor& input, double p, const Dims& dims, bool keepdim) {
    check<DTypeError>(is_floating(input.dtype()), "norm: expected a floating-point tensor, got ", input.dtype());
    const Dims axes = wrap_dims("norm", dims, input.ndim());
    if (p == 2) return euclidean(input, axes, keepdim);
    if (p == 1) return taxicab(input, axes, keepdim);
    if (p == 0) return cast(sum(not_equal(input, 0), axes, keepdim), input.dtype());
    if (std::isinf(p)) return p > 0 ? amax(abs(input), axes, keepdim) : amin(abs(input), axes, keepdim);
    return cast(pow(sum(pow(abs(widened(input)), p), axes, keepdim), 1 / p), input.dtype());
}

}  // namespace vkml

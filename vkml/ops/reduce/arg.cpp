#include <vector>

#include "vkml/autograd/node.h"
#include "vkml/ops/arange/arange.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/reduce/spread.h"
#include "vkml/ops/select/select.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

struct ArgForm {
    std::string_view op;
    bool largest, values;
};

std::pair<Tensor, Tensor> launch_arg(const ArgForm& form, const Tensor& input, const Dims& axes, bool keepdim) {
    check(reduced_count(input.shape(), axes) > 0, form.op, ": expected at least one element to choose from, got shape ",
          input.shape());
    const Shape shape = reduced_shape(input.shape(), axes, keepdim);
    const Tensor values = form.values ? empty(shape, input.dtype(), input.device()) : Tensor();
    const Tensor index = empty(shape, DType::i64, input.device());
    const Fold fold{.op = form.op,
                    .rows = arg_rows,
                    .columns = arg_columns,
                    .operation = form.largest ? 0u : 1u,
                    .finish = form.values ? 0u : 1u,
                    .state_bytes = kArgState,
                    .ordered = true};
    reduce(fold, input, axes, values, index);
    return {values, index};
}

Tensor position(const ArgForm& form, const Tensor& input, const Dims& dims, bool keepdim) {
    check<DTypeError>(input.dtype() != DType::boolean, form.op, ": expected a tensor of numbers, got bool");
    return launch_arg(form, input, wrap_dims(form.op, dims, input.ndim()), keepdim).second;
}

std::pair<Tensor, Tensor> extreme(const ArgForm& form, const Tensor& input, std::int64_t dim, bool keepdim) {
    const Dims axes{wrap_dim(form.op, dim, input.ndim())};
    const auto [values, index] = launch_arg(form, input, axes, keepdim);
    const TensorArg inputs[] = {input, index};  // as an input too, since only floating outputs are kept
    const auto out =
        record(form.op, std::vector<Tensor>{values, index}, inputs, keep_inputs(1),
               [axes, shape = input.shape()](const Backward& b) -> Grads {
                   if (shape.empty()) return {b.grad(), {}};
                   const auto axis = static_cast<int>(axes[0]);
                   Shape along = Dims::filled(shape.size(), 1);
                   along[axis] = shape[axis];
                   const Tensor& g = b.grad();
                   const Tensor places = reshape(arange(0, shape[axis], 1, DType::i64, g.device()), along);
                   return {where(equal(places, spread(b.input(1), shape, axes)), spread(g, shape, axes), 0.0), {}};
               });
    return {out[0], out[1]};
}

}  // namespace

std::pair<Tensor, Tensor> max(const Tensor& input, std::int64_t dim, bool keepdim) {
    return extreme({"max", true, true}, input, dim, keepdim);
}
std::pair<Tensor, Tensor> min(const Tensor& input, std::int64_t dim, bool keepdim) {
    return extreme({"min", false, true}, input, dim, keepdim);
}

Tensor argmax(const Tensor& input) { return position({"argmax", true, false}, input, {}, false); }
Tensor argmax(const Tensor& input, std::int64_t dim, bool keepdim) {
    return position({"argmax", true, false}, input, {dim}, keepdim);
}
Tensor argmin(const Tensor& input) { return position({"argmin", false, false}, input, {}, false); }
Tensor argmin(const Tensor& input, std::int64_t dim, bool keepdim) {
    return position({"argmin", false, false}, input, {dim}, keepdim);
}

}  // namespace vkml

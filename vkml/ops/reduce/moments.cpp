#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/reduce/spread.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

Tensor launch_floating(std::string_view op, const Tensor& input, const Dims& axes, bool keepdim, const Fold& fold) {
    check<DTypeError>(is_floating(input.dtype()), op, ": expected a floating-point tensor, got ", input.dtype());
    Tensor out = empty(reduced_shape(input.shape(), axes, keepdim), input.dtype(), input.device());
    reduce(fold, input, axes, out);
    return out;
}

double degrees(const Tensor& input, const Dims& axes, double correction) {
    return std::max(0.0, static_cast<double>(reduced_count(input.shape(), axes)) - correction);
}

Tensor launch_moments(std::string_view op, const Tensor& input, const Dims& axes, double correction, bool keepdim, bool root) {
    const Fold fold{.op = op, .rows = moments_rows, .columns = moments_columns, .finish = root ? 1u : 0u,
                    .state_bytes = 3 * itemsize(accumulator(input.dtype())),
                    .divisor = accumulator_bits(input.dtype(), degrees(input, axes, correction))};
    return launch_floating(op, input, axes, keepdim, fold);
}

}  // namespace

Tensor var(const Tensor& input, const Dims& dims, double correction, bool keepdim) {
    const Dims axes = wrap_dims("var", dims, input.ndim());
    return launch_moments("var", input, axes, correction, keepdim, false);
}

Tensor std(const Tensor& input, const Dims& dims, double correction, bool keepdim) {
    const Dims axes = wrap_dims("std", dims, input.ndim());
    return launch_moments("std", input, axes, correction, keepdim, true);
}

Tensor logsumexp(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("logsumexp", dims, input.ndim());
    const Fold fold{.op = "logsumexp", .rows = logsumexp_rows, .columns = logsumexp_columns,
                    .state_bytes = 2 * itemsize(accumulator(input.dtype()))};
    return launch_floating("logsumexp", input, axes, keepdim, fold);
}

}  // namespace vkml

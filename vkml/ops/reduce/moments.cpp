#include <algorithm>
#include <limits>

#include "vkml/autograd/grad_mode.h"
#include "vkml/autograd/node.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/reduce/spread.h"
#include "vkml/ops/select/select.h"
#include "vkml/ops/shape/shape.h"
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

Tensor launch_moments(std::string_view op, const Tensor& input, const Dims& axes, double correction, bool keepdim,
                      bool root) {
    const Fold fold{.op = op,
                    .rows = moments_rows,
                    .columns = moments_columns,
                    .finish = root ? 1u : 0u,
                    .state_bytes = 3 * itemsize(accumulator(input.dtype())),
                    .divisor = accumulator_bits(input.dtype(), degrees(input, axes, correction))};
    return launch_floating(op, input, axes, keepdim, fold);
}

/// The slope of the variance, or of its root when g has been divided by that: scale (x - mean) g, in x's dtype.
Tensor deviations(const Tensor& g, const Tensor& x, const Dims& axes, double scale) {
    const Tensor wide = widened(x);
    return cast(mul(spread(mul(g, scale), x.shape(), axes), sub(wide, mean(wide, axes, true))), x.dtype());
}

/// For f64 on a GPU, where the fold has no kernel. Not recorded.
Tensor composed_logsumexp(const Tensor& x, const Dims& axes, bool keepdim) {
    const GradMode off(false);
    const double infinity = std::numeric_limits<double>::infinity();
    if (x.numel() == 0) return sub(sum(x, axes, keepdim), infinity);
    const Tensor top = amax(x, axes, true), peak = masked_fill(top, isinf(top), 0.0);
    const Tensor rest = log(sum(exp(sub(x, peak)), axes, keepdim));
    return add(rest, reshape(peak, rest.shape()));
}

}  // namespace

Tensor var(const Tensor& input, const Dims& dims, double correction, bool keepdim) {
    const Dims axes = wrap_dims("var", dims, input.ndim());
    const double scale = 2 / degrees(input, axes, correction);
    return record(
        "var", launch_moments("var", input, axes, correction, keepdim, false), {input}, keep_inputs(0),
        [axes, scale](const Backward& b) -> Grads { return {deviations(widened(b.grad()), b.input(0), axes, scale)}; });
}

Tensor std(const Tensor& input, const Dims& dims, double correction, bool keepdim) {
    const Dims axes = wrap_dims("std", dims, input.ndim());
    const double scale = 1 / degrees(input, axes, correction);
    const Keep keep{.inputs = 1, .outputs = 1};
    return record("std", launch_moments("std", input, axes, correction, keepdim, true), {input}, keep,
                  [axes, scale](const Backward& b) -> Grads {
                      const Tensor y = widened(b.output());
                      const Tensor g =
                          masked_fill(div(widened(b.grad()), y), equal(detach(y), 0), 0.0);  // a constant has slope 0
                      return {deviations(g, b.input(0), axes, scale)};
                  });
}

Tensor logsumexp(const Tensor& input, const Dims& dims, bool keepdim) {
    const Dims axes = wrap_dims("logsumexp", dims, input.ndim());
    const Fold fold{.op = "logsumexp",
                    .rows = logsumexp_rows,
                    .columns = logsumexp_columns,
                    .state_bytes = 2 * itemsize(accumulator(input.dtype()))};
    const Keep keep{.inputs = 1, .outputs = 1};
    const bool composed = input.dtype() == DType::f64 && !input.device().is_cpu();
    return record(
        "logsumexp",
        composed ? composed_logsumexp(input, axes, keepdim) : launch_floating("logsumexp", input, axes, keepdim, fold),
        {input}, keep, [axes](const Backward& b) -> Grads {
            const DType dtype = b.input(0).dtype();
            const Tensor x = widened(b.input(0)), y = widened(b.output()), g = widened(b.grad());
            // Where all are -infinity, x - y would be NaN, where the slope of every element is 0.
            const Tensor shift = masked_fill(y, equal(detach(y), -std::numeric_limits<double>::infinity()), 0.0);
            return {cast(mul(spread(g, x.shape(), axes), exp(sub(x, spread(shift, x.shape(), axes)))), dtype)};
        });
}

}  // namespace vkml

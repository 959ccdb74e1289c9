#include "vkml/ops/softmax/softmax.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/softmax/softmax_kernel.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

Tensor packed(const Tensor& t) {
    const NoGrad off;
    return contiguous(t);
}

/// The rows of x along an axis; x is packed first where the arguments cannot say where they lie.
RowLayout rows_of(Tensor& x, int axis) {
    RowLayout layout = row_layout(x, axis);
    if (layout.rank == 0) layout = row_layout(x = packed(x), axis);
    return layout;
}

Tensor run(std::string_view op, const Tensor& input, std::int64_t dim, bool log) {
    check<DTypeError>(is_floating(input.dtype()), op, ": expected a floating-point tensor, got ", input.dtype());
    const int axis = wrap_dim(op, dim, input.ndim());
    Tensor x = input, y = empty_like(input);
    if (y.numel() == 0) return y;
    RowLayout layout = rows_of(x, axis);
    layout.args.y = y.address();
    launch_rows(op, softmax_rows, x, layout, false, log, {x}, {y});
    return y;
}

Tensor run_backward(std::string_view op, const Tensor& g, const Tensor& y, std::int64_t dim, bool log) {
    check<DTypeError>(is_floating(y.dtype()) && g.dtype() == y.dtype(), op,
                      ": expected two floating-point tensors of one dtype, got ", g.dtype(), " and ", y.dtype());
    check(g.shape() == y.shape(), op, ": expected a gradient of shape ", y.shape(), ", got ", g.shape());
    common_device(op, {&g, &y});
    const int axis = wrap_dim(op, dim, y.ndim());
    Tensor dx = empty_like(y);
    if (dx.numel() == 0) return dx;
    Tensor x = g;
    const Tensor second = packed(y);
    RowLayout layout = rows_of(x, axis);
    layout.args.second = second.address();
    layout.args.y = dx.address();
    launch_rows(op, softmax_backward_rows, x, layout, false, log, {x, second}, {dx});
    return dx;
}

}  // namespace

Tensor softmax(const Tensor& input, std::int64_t dim) {
    return record("softmax", run("softmax", input, dim, false), {input}, keep_output,
                  [dim](const Backward& b) -> Grads { return {softmax_backward(b.grad(), b.output(), dim)}; });
}

Tensor log_softmax(const Tensor& input, std::int64_t dim) {
    return record("log_softmax", run("log_softmax", input, dim, true), {input}, keep_output,
                  [dim](const Backward& b) -> Grads { return {log_softmax_backward(b.grad(), b.output(), dim)}; });
}

SoftmaxStatistics softmax_statistics(std::string_view op, const Tensor& input, int axis) {
    Shape shape = input.shape();
    shape.erase(axis);
    const DType wide = input.dtype() == DType::f64 ? DType::f64 : DType::f32;
    SoftmaxStatistics s{empty(shape, wide, input.device()), empty(shape, wide, input.device())};
    if (input.numel() == 0) return s;
    Tensor x = input;
    RowLayout layout = rows_of(x, axis);
    layout.args.mean = s.peak.address();
    layout.args.rstd = s.log_sum.address();
    launch_rows(op, softmax_statistics_rows, x, layout, false, true, {x}, {s.peak, s.log_sum});
    return s;
}

// Composed of ordinary operators while the backward itself is recorded: the second derivative is theirs.
Tensor softmax_backward(const Tensor& g, const Tensor& y, std::int64_t dim) {
    const TensorArg inputs[] = {g, y};
    if (tracks(inputs)) return mul(y, sub(g, sum(mul(g, y), {dim}, true)));
    return run_backward("softmax_backward", g, y, dim, false);
}

Tensor log_softmax_backward(const Tensor& g, const Tensor& y, std::int64_t dim) {
    const TensorArg inputs[] = {g, y};
    if (tracks(inputs)) return sub(g, mul(exp(y), sum(g, {dim}, true)));
    return run_backward("log_softmax_backward", g, y, dim, true);
}

}  // namespace vkml

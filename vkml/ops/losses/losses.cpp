#include "vkml/ops/losses/losses.h"

#include "vkml/ops/cast/cast.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

DType wide(DType d) { return d == DType::f64 ? DType::f64 : DType::f32; }

/// Both arguments in the dtype that is computed with, and the dtype of the result.
struct Pair {
    Tensor input, target;
    DType dtype;

    Pair(std::string_view op, const Tensor& a, const Tensor& b) : dtype(promote(a.dtype(), b.dtype())) {
        check<DTypeError>(is_floating(dtype), op, ": expected floating-point tensors, got ", a.dtype(), " and ",
                          b.dtype());
        common_device(op, {&a, &b});
        broadcast_shapes(op, a.shape(), b.shape());
        input = cast(a, wide(dtype));
        target = cast(b, wide(dtype));
    }
};

Tensor reduced(const Tensor& loss, Reduction reduction, DType dtype) {
    switch (reduction) {
        case Reduction::none:
            return cast(loss, dtype);
        case Reduction::sum:
            return cast(sum(loss), dtype);
        case Reduction::batchmean: {
            const double batch = loss.ndim() ? static_cast<double>(loss.shape()[0]) : 1.0;
            return cast(div(sum(loss), batch), dtype);
        }
        default:
            return cast(div(sum(loss), static_cast<double>(loss.numel())), dtype);
    }
}

Tensor weighted(const Tensor& loss, const Tensor& weight) {
    return weight.defined() ? mul(loss, cast(weight, loss.dtype())) : loss;
}

Tensor huber(const Tensor& distance, double delta) {
    const Tensor near = minimum(distance, delta);
    return mul(near, sub(distance, mul(near, 0.5)));
}

}  // namespace

Reduction parse_reduction(std::string_view op, std::string_view word) {
    if (word == "mean") return Reduction::mean;
    if (word == "sum") return Reduction::sum;
    if (word == "none") return Reduction::none;
    if (word == "batchmean" && op == "kl_div") return Reduction::batchmean;
    fail<ShapeError>(op, ": reduction: expected mean, sum", op == "kl_div" ? ", batchmean" : "", " or none, got '",
                     word, "'");
}

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
    const Pair p("mse_loss", input, target);
    return reduced(square(sub(p.input, p.target)), reduction, p.dtype);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
    const Pair p("l1_loss", input, target);
    return reduced(abs(sub(p.input, p.target)), reduction, p.dtype);
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction, double beta) {
    check(beta >= 0, "smooth_l1_loss: beta: expected a number >= 0, got ", beta);
    if (beta == 0) return l1_loss(input, target, reduction);
    const Pair p("smooth_l1_loss", input, target);
    return reduced(mul(huber(abs(sub(p.input, p.target)), beta), 1 / beta), reduction, p.dtype);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction, double delta) {
    check(delta > 0, "huber_loss: delta: expected a number > 0, got ", delta);
    const Pair p("huber_loss", input, target);
    return reduced(huber(abs(sub(p.input, p.target)), delta), reduction, p.dtype);
}

Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction, bool log_target) {
    const Pair p("kl_div", input, target);
    if (log_target) return reduced(mul(exp(p.target), sub(p.target, p.input)), reduction, p.dtype);
    // At 0 any finite logarithm does: the product is 0.
    const Tensor logs = log(maximum(p.target, 1e-37));
    return reduced(mul(p.target, sub(logs, p.input)), reduction, p.dtype);
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction) {
    check(input.shape() == target.shape(), "binary_cross_entropy: target: expected shape ", input.shape(), ", got ",
          target.shape());
    const Pair p("binary_cross_entropy", input, target);
    const Tensor yes = maximum(log(p.input), -100.0), no = maximum(log1p(neg(p.input)), -100.0);
    const Tensor loss = neg(add(mul(p.target, yes), mul(sub(1.0, p.target), no)));
    return reduced(weighted(loss, weight), reduction, p.dtype);
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight,
                                        Reduction reduction, const Tensor& pos_weight) {
    check(input.shape() == target.shape(), "binary_cross_entropy_with_logits: target: expected shape ", input.shape(),
          ", got ", target.shape());
    const Pair p("binary_cross_entropy_with_logits", input, target);
    const Tensor yes = weighted(mul(p.target, softplus(neg(p.input))), pos_weight);
    return reduced(weighted(add(yes, mul(sub(1.0, p.target), softplus(p.input))), weight), reduction, p.dtype);
}

}  // namespace vkml

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/losses/losses.h"
#include "vkml/ops/losses/nll.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/select/select.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/softmax/softmax.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

DType wide(const Tensor& t) { return t.dtype() == DType::f64 ? DType::f64 : DType::f32; }
int class_axis(const Tensor& input) { return input.ndim() == 1 ? 0 : 1; }

void check_common(std::string_view op, const Tensor& input, const Tensor& target, const Tensor& weight) {
    check<DTypeError>(is_floating(input.dtype()), op, ": expected a floating-point tensor, got ", input.dtype());
    check(input.ndim() >= 1, op, ": expected rank >= 1, got ()");
    common_device(op, {&input, &target, &weight});
    if (!weight.defined()) return;
    const Shape classes{input.shape()[class_axis(input)]};
    check(weight.shape() == classes, op, ": weight: expected shape ", classes, ", got ", weight.shape());
    check<DTypeError>(weight.dtype() == input.dtype() || weight.dtype() == DType::f32, op, ": weight: expected ",
                      input.dtype(), input.dtype() == DType::f32 ? ", got " : " or float32, got ", weight.dtype());
}

/// The weights shaped to broadcast over the input.
Tensor class_weights(const Tensor& input, const Tensor& weight) {
    Shape shape = Shape::filled(input.ndim(), 1);
    shape[class_axis(input)] = weight.numel();
    return reshape(weight, shape);
}

NllProblem problem_of(std::string_view op, const Tensor& input, const Tensor& target, const Tensor& weight,
                      std::int64_t ignore) {
    Shape expected = input.shape();
    expected.erase(class_axis(input));
    check(target.shape() == expected, op, ": target: expected shape ", expected, ", got ", target.shape());
    check<NotImplementedError>(!weight.defined() || !grad_enabled() || !weight.requires_grad(), op,
                               ": weight: expected a tensor that requires no gradient, got one that does");
    const NoGrad off;
    return {op, contiguous(cast(target, DType::i64)), weight.defined() ? contiguous(cast(weight, wide(input))) : weight,
            ignore, class_axis(input)};
}

Tensor reduced(const Tensor& loss, const Tensor& kept, Reduction reduction, DType dtype) {
    if (reduction == Reduction::none) return cast(loss, dtype);
    const Tensor total = sum(loss);
    return cast(reduction == Reduction::sum ? total : div(total, sum(kept)), dtype);
}

/// Targets as probabilities: -sum over classes of weight target log_softmax; mean divides by the positions.
Tensor with_probabilities(const Tensor& input, const Tensor& target, const Tensor& weight, Reduction reduction,
                          double smoothing) {
    const int axis = class_axis(input);
    const auto classes = static_cast<double>(input.shape()[axis]);
    Tensor p = cast(target, wide(input));
    if (smoothing > 0) p = add(mul(p, 1 - smoothing), smoothing / classes);
    if (weight.defined()) p = mul(p, class_weights(input, cast(weight, wide(input))));
    const Tensor loss = neg(sum(mul(p, log_softmax(cast(input, wide(input)), axis)), {axis}));
    if (reduction == Reduction::none) return cast(loss, input.dtype());
    const Tensor total = sum(loss);
    return cast(reduction == Reduction::sum ? total : div(total, static_cast<double>(loss.numel())), input.dtype());
}

/// (1 - s) of the target's loss and s of the mean loss over all classes, both weighted.
Tensor smoothed(const NllProblem& p, const Tensor& x, const NllResult& picked, double smoothing) {
    Tensor logs = log_softmax(x, p.axis);
    const auto classes = static_cast<double>(x.shape()[p.axis]);
    if (p.weight.defined()) logs = mul(logs, class_weights(x, p.weight));
    Tensor all = mul(sum(logs, {p.axis}), -smoothing / classes);
    // Chosen, not multiplied: what is ignored may be infinite.
    return add(mul(picked.loss, 1 - smoothing), where(not_equal(p.target, p.ignore), all, 0.0));
}

bool is_class_dtype(DType d) { return d == DType::i64 || d == DType::i32; }

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, std::int64_t ignore_index,
                     Reduction reduction, double label_smoothing) {
    check_common("cross_entropy", input, target, weight);
    check(label_smoothing >= 0 && label_smoothing <= 1,
          "cross_entropy: label_smoothing: expected a number in [0, 1], got ", label_smoothing);
    if (!is_class_dtype(target.dtype())) {
        check<DTypeError>(is_floating(target.dtype()),
                          "cross_entropy: target: expected int64 or int32 classes, or probabilities, got ",
                          target.dtype());
        check(target.shape() == input.shape(), "cross_entropy: target: expected int64 or int32 classes, or ",
              "probabilities of shape ", input.shape(), ", got ", target.dtype(), " of shape ", target.shape());
        return with_probabilities(input, target, weight, reduction, label_smoothing);
    }
    const NllProblem problem = problem_of("cross_entropy", input, target, weight, ignore_index);
    const NllResult picked = nll_elements(problem, input, true);
    const Tensor loss =
        label_smoothing > 0 ? smoothed(problem, cast(input, wide(input)), picked, label_smoothing) : picked.loss;
    return reduced(loss, picked.kept, reduction, input.dtype());
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, std::int64_t ignore_index,
                Reduction reduction) {
    check_common("nll_loss", input, target, weight);
    check<DTypeError>(is_class_dtype(target.dtype()), "nll_loss: target: expected int64 or int32, got ",
                      target.dtype());
    const NllProblem problem = problem_of("nll_loss", input, target, weight, ignore_index);
    const NllResult picked = nll_elements(problem, input, false);
    return reduced(picked.loss, picked.kept, reduction, input.dtype());
}

}  // namespace vkml

#include "vkml/ops/layer_norm/layer_norm.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/layer_norm/layer_norm_kernel.h"

namespace vkml {

Tensor layer_norm(const Tensor& input, std::int64_t normalized_axes, double eps, const Tensor& weight,
                  const Tensor& bias) {
    const int axes = check_norm("layer_norm", input, normalized_axes);
    check_norm_parameter("layer_norm", "weight", input, axes, weight);
    check_norm_parameter("layer_norm", "bias", input, axes, bias);
    check<DTypeError>(!weight.defined() || !bias.defined() || weight.dtype() == bias.dtype(),
                      "layer_norm: expected weight and bias of one dtype, got ",
                      weight.defined() ? weight.dtype() : DType::none, " and ",
                      bias.defined() ? bias.dtype() : DType::none);
    const TensorArg inputs[] = {input, weight, bias};
    const bool keep = tracks(inputs);
    const NormResult result = run_norm(layer_norm_kernels, input, axes, eps, weight, bias, keep);
    return record("layer_norm", result.y, {input, weight, bias}, keep_inputs(0, 1, 2),
                  [axes, eps, mean = result.mean, rstd = result.rstd](const Backward& b) -> Grads {
                      const Tensor bias_like = b.needs(2) ? b.input(2) : Tensor{};
                      const NormGrads grads =
                          grad_enabled() ? composed_norm_backward(layer_norm_kernels, b.grad(), b.input(0), axes, eps,
                                                                  b.input(1), b.needs(1), bias_like)
                                         : run_norm_backward(layer_norm_kernels, b.grad(), b.input(0), axes, mean, rstd,
                                                             b.input(1), b.needs(0), b.needs(1), bias_like);
                      return {grads.x, grads.weight, grads.bias};
                  });
}

}  // namespace vkml

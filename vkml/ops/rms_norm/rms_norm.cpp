#include "vkml/ops/rms_norm/rms_norm.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/rms_norm/rms_norm_kernel.h"

namespace vkml {

Tensor rms_norm(const Tensor& input, std::int64_t normalized_axes, double eps, const Tensor& weight) {
    const int axes = check_norm("rms_norm", input, normalized_axes);
    check_norm_parameter("rms_norm", "weight", input, axes, weight);
    const TensorArg inputs[] = {input, weight};
    const bool keep = tracks(inputs);
    const NormResult result = run_norm(rms_norm_kernels, input, axes, eps, weight, {}, keep);
    return record("rms_norm", result.y, {input, weight}, keep_inputs(0, 1),
                  [axes, eps, rstd = result.rstd](const Backward& b) -> Grads {
                      const NormGrads grads = grad_enabled()
                                                  ? composed_norm_backward(rms_norm_kernels, b.grad(), b.input(0), axes,
                                                                           eps, b.input(1), b.needs(1), {})
                                                  : run_norm_backward(rms_norm_kernels, b.grad(), b.input(0), axes, {},
                                                                      rstd, b.input(1), b.needs(0), b.needs(1), {});
                      return {grads.x, grads.weight};
                  });
}

}  // namespace vkml

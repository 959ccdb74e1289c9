#pragma once
#include <cstdint>
#include <string_view>

#include "vkml/core/tensor.h"

/// The fused inside of cross_entropy and nll_loss, in f32 or f64.
namespace vkml {

/// What does not change between forward and backward. target: packed int64; weight: of the input's dtype, or undefined.
struct NllProblem {
    std::string_view op;
    Tensor target, weight;
    std::int64_t ignore;
    int axis;  // of the classes
};

struct NllResult {
    Tensor loss;  // of target's shape, differentiable
    Tensor kept;  // the weight of each target, 0 where it is ignored
};
/// -weight[target] input[target], input holding log-probabilities; `softmax`: logits, in two dispatches.
NllResult nll_elements(const NllProblem& problem, const Tensor& input, bool softmax);

}  // namespace vkml

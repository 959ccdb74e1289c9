#pragma once
#include <cstdint>
#include <string_view>

#include "vkml/core/tensor.h"

/// The fused inside of cross_entropy and nll_loss.
namespace vkml {

/// What does not change between forward and backward. target: packed int64; weight: f32 (f64 for f64), or undefined.
struct NllProblem {
    std::string_view op;
    Tensor target, weight;
    std::int64_t ignore;
    int axis;  // of the classes
};

struct NllResult {
    Tensor loss;  // of target's shape, f32 (f64 for f64), differentiable
    Tensor kept;  // the weight of each target, 0 where it is ignored
};
/// -weight[target] input[target], input holding log-probabilities of any floating dtype; `softmax`: logits, read once
/// forward and once backward, with two values kept for each position.
NllResult nll_elements(const NllProblem& problem, const Tensor& input, bool softmax);

}  // namespace vkml

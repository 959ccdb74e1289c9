#pragma once
#include <span>
#include <vector>

#include "vkml/autograd/node.h"

namespace vkml {

struct BackwardOptions {
    bool retain_graph = false;  // keep the graph for another backward
    bool create_graph = false;  // record the backward itself (implies retain_graph)
    bool allow_unused = false;  // grad(): an input no output depends on gets an undefined tensor
};

/// Adds the gradient of `output` to the `grad` of every leaf it depends on. `gradient` weighs the output's elements; it
/// may be left out for one element. Throws Error on a freed graph or without anything to differentiate, ShapeError on a
/// wrong gradient.
void backward(const Tensor& output, const Tensor& gradient = {}, BackwardOptions options = {});
void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients, BackwardOptions options = {});

/// The gradients of outputs with respect to inputs, without touching any `grad`.
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         std::span<const Tensor> gradients = {}, BackwardOptions options = {});

}  // namespace vkml

#include "vkml/autograd/engine.h"

namespace vkml {

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
    vkml::backward(*this, gradient, {.retain_graph = retain_graph, .create_graph = create_graph});
}

}  // namespace vkml

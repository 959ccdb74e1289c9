#pragma once
#include "vkml/autograd/node.h"
#include "vkml/ops/recurrent/recurrent.h"
#include "vkml/runtime/grid.h"

namespace vkml {

/// The sizes of one call, and where things lie.
struct RecurrentSequence {
    static constexpr std::uint32_t kThreads = 128;

    RecurrentCell kind;
    bool reverse;
    std::int64_t n, steps, width, gates;  // gates: of one step, a multiple of width
    DType dtype;

    /// The position in time of the k-th step.
    std::int64_t step(std::int64_t k) const { return reverse ? steps - 1 - k : k; }
    Spec spec(bool last) const { return {kThreads, static_cast<std::uint32_t>(kind), last ? 1u : 0u}; }
    Grid grid() const { return linear_grid(ceil_div(static_cast<std::uint64_t>(n * width), kThreads)); }
    /// Address of position t in a packed (N, T, each) tensor; 0 if there is none.
    Address at(const Tensor& tensor, std::int64_t t, std::int64_t each) const {
        return tensor.defined() ? tensor.address() + static_cast<Address>(t * each) * itemsize(dtype) : 0;
    }
};

/// What the backward pass reads. cell, cells and grad_cells are of lstm only; either gradient may be undefined.
struct RecurrentInputs {
    Tensor gates, weight, bias, hidden, cell;
    Tensor states, cells;  // after every step
    Tensor grad_states, grad_cells;
};

/// The states before every step, (N, T, H), of the first one and those after. Differentiable.
Tensor recurrent_states_before(const RecurrentSequence& s, const Tensor& first, const Tensor& states);

/// The backward pass in differentiable operators, for gradients of gradients; also what the kernels are tested against.
Grads composed_recurrent_backward(const RecurrentSequence& s, const RecurrentInputs& x);

}  // namespace vkml

#include "vkml/ops/cat/cat.h"
#include "vkml/ops/elementwise/operators.h"
#include "vkml/ops/linear/linear.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/recurrent/recurrent_internal.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"

namespace vkml {
namespace {

/// A factor for every step, (N, T, H), and its value at one.
struct Factor {
    Tensor all;
    Tensor operator()(std::int64_t t) const { return select(all, 1, t); }
};

Tensor plus(const Tensor& a, const Tensor& b) { return !a.defined() ? b : b.defined() ? a + b : a; }

/// The gradient of a step's result: what came from outside and what came through the next step.
Tensor arriving(const Tensor& grads, std::int64_t t, const Tensor& later, const Tensor& like) {
    const Tensor g = plus(grads.defined() ? select(grads, 1, t) : Tensor{}, later);
    return g.defined() ? g : like * 0.0;
}

Tensor sigmoid_slope(const Tensor& y) { return y * (1.0 - y); }
Tensor tanh_slope(const Tensor& y) { return 1.0 - square(y); }

/// Gradients per position in time, brought together.
struct Gathered {
    std::vector<Tensor> gates, product;
    Tensor later, carry;  // of the state before the first step
};

Gathered lstm(const RecurrentSequence& s, const RecurrentInputs& x, const Tensor& product) {
    const auto gate = [&](int i) { return narrow(x.gates + product, 2, i * s.width, s.width); };
    const Tensor i = sigmoid(gate(0)), f = sigmoid(gate(1)), c = tanh(gate(2)), o = sigmoid(gate(3));
    const Tensor earlier = recurrent_states_before(s, x.cell, x.cells), t = tanh(f * earlier + i * c);
    const Factor to_cell{o * tanh_slope(t)}, forget{f}, of_i{c * sigmoid_slope(i)}, of_f{earlier * sigmoid_slope(f)},
        of_c{i * tanh_slope(c)}, of_o{t * sigmoid_slope(o)};
    Gathered out;
    out.gates.resize(static_cast<std::size_t>(s.steps));
    for (std::int64_t k = s.steps - 1; k >= 0; k--) {
        const std::int64_t at = s.step(k);
        const Tensor gh = arriving(x.grad_states, at, out.later, x.hidden);
        const Tensor gc = arriving(x.grad_cells, at, out.carry, x.cell) + gh * to_cell(at);
        const Tensor parts[] = {gc * of_i(at), gc * of_f(at), gc * of_c(at), gh * of_o(at)};
        out.carry = gc * forget(at);
        const Tensor all = out.gates[static_cast<std::size_t>(at)] = cat(parts, 1);
        out.later = matmul(all, x.weight);
    }
    out.product = out.gates;
    return out;
}

Gathered gru(const RecurrentSequence& s, const RecurrentInputs& x, const Tensor& product) {
    const auto gate = [&](int i) { return narrow(x.gates, 2, i * s.width, s.width); };
    const auto part = [&](int i) { return narrow(product, 2, i * s.width, s.width); };
    const Tensor r = sigmoid(gate(0) + part(0)), z = sigmoid(gate(1) + part(1)), n = tanh(gate(2) + r * part(2));
    const Tensor earlier = recurrent_states_before(s, x.hidden, x.states);
    const Factor update{z}, reset{r}, to_new{(1.0 - z) * tanh_slope(n)}, of_r{part(2) * sigmoid_slope(r)},
        of_z{(earlier - n) * sigmoid_slope(z)};
    Gathered out;
    out.gates.resize(static_cast<std::size_t>(s.steps));
    out.product.resize(static_cast<std::size_t>(s.steps));
    for (std::int64_t k = s.steps - 1; k >= 0; k--) {
        const std::int64_t at = s.step(k);
        const Tensor gh = arriving(x.grad_states, at, plus(out.later, out.carry), x.hidden);
        const Tensor fresh = gh * to_new(at), gr = fresh * of_r(at), gz = gh * of_z(at);
        const Tensor gates[] = {gr, gz, fresh}, products[] = {gr, gz, fresh * reset(at)};
        out.carry = gh * update(at);
        out.gates[static_cast<std::size_t>(at)] = cat(gates, 1);
        const Tensor all = out.product[static_cast<std::size_t>(at)] = cat(products, 1);
        out.later = matmul(all, x.weight);
    }
    return out;
}

Gathered plain(const RecurrentSequence& s, const RecurrentInputs& x, const Tensor& product) {
    const Tensor sum = x.gates + product;
    const Factor slope{s.kind == RecurrentCell::tanh ? tanh_slope(tanh(sum)) : sign(relu(sum))};
    Gathered out;
    out.gates.resize(static_cast<std::size_t>(s.steps));
    for (std::int64_t k = s.steps - 1; k >= 0; k--) {
        const std::int64_t at = s.step(k);
        const Tensor all = out.gates[static_cast<std::size_t>(at)] =
            arriving(x.grad_states, at, out.later, x.hidden) * slope(at);
        out.later = matmul(all, x.weight);
    }
    out.product = out.gates;
    return out;
}

}  // namespace

Grads composed_recurrent_backward(const RecurrentSequence& s, const RecurrentInputs& x) {
    const Tensor earlier = recurrent_states_before(s, x.hidden, x.states), product = linear(earlier, x.weight, x.bias);
    const Gathered g = s.kind == RecurrentCell::lstm  ? lstm(s, x, product)
                       : s.kind == RecurrentCell::gru ? gru(s, x, product)
                                                      : plain(s, x, product);
    const Tensor rows = reshape(stack(g.product, 1), {s.n * s.steps, s.gates});
    Grads grads(5);
    grads[0] = stack(g.gates, 1);
    grads[1] = matmul(transpose(rows, 0, 1), reshape(earlier, {s.n * s.steps, s.width}));
    if (x.bias.defined()) grads[2] = sum_to(rows, {s.gates});
    grads[3] = s.kind == RecurrentCell::gru ? g.later + g.carry : g.later;
    if (s.kind == RecurrentCell::lstm) grads[4] = g.carry;
    return grads;
}

}  // namespace vkml

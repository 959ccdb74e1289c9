#include "vkml/ops/recurrent/recurrent.h"

#include "vkml/ops/cat/cat.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/recurrent/recurrent_internal.h"
#include "vkml/ops/recurrent/recurrent_kernel.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

std::int64_t gate_count(RecurrentCell kind) {
    return kind == RecurrentCell::lstm ? 4 : kind == RecurrentCell::gru ? 3 : 1;
}

/// The state before a step: the one given, or that after the step before it.
struct Before {
    Address address;
    std::int64_t row;
};
Before before(const RecurrentSequence& s, std::int64_t k, const Tensor& first, const Tensor& states) {
    if (!first.defined()) return {0, 0};
    if (k == 0) return {first.address(), s.width};
    return {s.at(states, s.step(k - 1), s.width), s.steps * s.width};
}

RecurrentSequence check_arguments(RecurrentCell kind, const Tensor& gates, const Tensor& weight, const Tensor& bias,
                                  const Tensor& hidden, const Tensor& cell, bool reverse) {
    constexpr std::string_view op = "recurrent";
    check<DTypeError>(is_floating(gates.dtype()), op, ": expected a floating-point tensor, got ", gates.dtype());
    check(gates.ndim() == 3, op, ": gates: expected rank 3, got ", gates.shape());
    check(hidden.ndim() == 2, op, ": hidden: expected rank 2, got ", hidden.shape());
    const std::int64_t n = gates.size(0), steps = gates.size(1), width = hidden.size(1);
    const std::int64_t all = gate_count(kind) * width;
    check(steps >= 1 && width >= 1, op, ": expected at least one step and one unit, got gates ", gates.shape());
    check(gates.size(2) == all, op, ": gates: expected ", all, " columns, got ", gates.shape());
    check(hidden.size(0) == n, op, ": hidden: expected shape ", Shape{n, width}, ", got ", hidden.shape());
    check(weight.shape() == Shape{all, width}, op, ": weight: expected shape ", Shape{all, width}, ", got ",
          weight.shape());
    check(!bias.defined() || bias.shape() == Shape{all}, op, ": bias: expected shape ", Shape{all}, ", got ",
          bias.defined() ? bias.shape() : Shape{});
    check(cell.defined() == (kind == RecurrentCell::lstm), op, ": cell: expected a state for lstm and none else");
    check(!cell.defined() || cell.shape() == hidden.shape(), op, ": cell: expected shape ", hidden.shape(), ", got ",
          cell.defined() ? cell.shape() : Shape{});
    for (const Tensor* t : {&weight, &bias, &hidden, &cell})
        check<DTypeError>(!t->defined() || t->dtype() == gates.dtype(), op, ": expected one dtype, got ", gates.dtype(),
                          " and ", t->defined() ? t->dtype() : gates.dtype());
    common_device(op, {&gates, &weight, &bias, &hidden, &cell});
    check(steps * all < (std::int64_t{1} << 31) && n * width < (std::int64_t{1} << 31), op,
          ": expected fewer than 2^31 gates in a sequence and units in a step, got gates ", gates.shape());
    return {kind, reverse, n, steps, width, all, gates.dtype()};
}

Recurrence forward(const RecurrentSequence& s, const Tensor& gates, const Tensor& weight, const Tensor& bias,
                   const Tensor& hidden, const Tensor& cell) {
    const NoGrad off;
    const Shape shape{s.n, s.steps, s.width};
    Recurrence out{empty(shape, s.dtype, gates.device()), {}};
    if (cell.defined()) out.cell = empty(shape, s.dtype, gates.device());
    const Tensor right = transpose(weight, 0, 1);
    const bool lstm = s.kind == RecurrentCell::lstm;
    const Tensor& first = lstm ? cell : hidden;
    const Tensor& states = lstm ? out.cell : out.hidden;
    for (std::int64_t k = 0; k < s.steps; k++) {
        const std::int64_t t = s.step(k);
        const Tensor from = k == 0 ? hidden : select(out.hidden, 1, s.step(k - 1));
        const Tensor product = gemm("recurrent", from, right, bias);
        const Before previous = before(s, k, first, states);
        const RecurrentArgs args{.gates = s.at(gates, t, s.gates),
                                 .product = product.address(),
                                 .previous = previous.address,
                                 .hidden = s.at(out.hidden, t, s.width),
                                 .cell = s.at(out.cell, t, s.width),
                                 .rows = static_cast<std::uint32_t>(s.n),
                                 .width = static_cast<std::uint32_t>(s.width),
                                 .gates_row = static_cast<std::uint32_t>(s.steps * s.gates),
                                 .previous_row = static_cast<std::uint32_t>(previous.row),
                                 .state_row = static_cast<std::uint32_t>(s.steps * s.width)};
        stream_of(gates).launch(recurrent_step_kernel, s.dtype, s.spec(k == 0), s.grid(), args,
                                {gates, product, first, states}, {out.hidden, out.cell});
    }
    return out;
}

/// From the last step to the first: one dispatch and one product each.
Grads fast_backward(const RecurrentSequence& s, const RecurrentInputs& x, const Backward& b) {
    const Tensor earlier = recurrent_states_before(s, x.hidden, x.states);
    const Tensor product = gemm("recurrent", earlier, transpose(x.weight, 0, 1), x.bias);
    const bool lstm = s.kind == RecurrentCell::lstm, gru = s.kind == RecurrentCell::gru;
    const auto make = [&](const Shape& shape) { return empty(shape, s.dtype, x.gates.device()); };
    const Tensor grad_gates = make(x.gates.shape()), grad_product = gru ? make(x.gates.shape()) : grad_gates;
    const Tensor carry = lstm || gru ? make({s.n, s.width}) : Tensor{};
    const Tensor& first = lstm ? x.cell : x.hidden;
    const Tensor& states = lstm ? x.cells : x.states;
    Tensor later;
    for (std::int64_t k = s.steps - 1; k >= 0; k--) {
        const std::int64_t t = s.step(k);
        const Before previous = before(s, k, first, states);
        const RecurrentBackwardArgs args{.gates = s.at(x.gates, t, s.gates),
                                         .product = s.at(product, t, s.gates),
                                         .previous = previous.address,
                                         .grad_hidden = s.at(x.grad_states, t, s.width),
                                         .grad_cell = s.at(x.grad_cells, t, s.width),
                                         .later = later.defined() ? later.address() : 0,
                                         .carry = carry.defined() ? carry.address() : 0,
                                         .grad_gates = s.at(grad_gates, t, s.gates),
                                         .grad_product = s.at(grad_product, t, s.gates),
                                         .rows = static_cast<std::uint32_t>(s.n),
                                         .width = static_cast<std::uint32_t>(s.width),
                                         .gates_row = static_cast<std::uint32_t>(s.steps * s.gates),
                                         .previous_row = static_cast<std::uint32_t>(previous.row),
                                         .state_row = static_cast<std::uint32_t>(s.steps * s.width)};
        stream_of(x.gates).launch(recurrent_step_backward_kernel, s.dtype, s.spec(k == s.steps - 1), s.grid(), args,
                                  {x.gates, product, first, states, x.grad_states, x.grad_cells, later},
                                  {carry, grad_gates, grad_product});
        if (k > 0 || b.needs(3)) later = gemm("recurrent", select(grad_product, 1, t), x.weight);
    }
    Grads grads(5);
    if (b.needs(0)) grads[0] = grad_gates;
    const Tensor rows = reshape(grad_product, {s.n * s.steps, s.gates});
    if (b.needs(1)) grads[1] = matmul(transpose(rows, 0, 1), reshape(earlier, {s.n * s.steps, s.width}));
    if (x.bias.defined() && b.needs(2)) grads[2] = sum_to(rows, {s.gates});
    if (b.needs(3)) grads[3] = gru ? add(later, carry) : later;
    if (lstm && b.needs(4)) grads[4] = carry;
    return grads;
}

RecurrentInputs given(const RecurrentSequence& s, const Backward& b) {
    const auto packed = [](const Tensor& t) { return t.defined() ? contiguous(t) : t; };
    RecurrentInputs x{.gates = packed(b.input(0)),
                      .weight = b.input(1),
                      .bias = b.input(2),
                      .hidden = packed(b.input(3)),
                      .cell = packed(b.input(4)),
                      .states = b.output(0),
                      .cells = {},
                      .grad_states = packed(b.grad(0)),
                      .grad_cells = {}};
    if (s.kind == RecurrentCell::lstm) x.cells = b.output(1), x.grad_cells = packed(b.grad(1));
    return x;
}

}  // namespace

Tensor recurrent_states_before(const RecurrentSequence& s, const Tensor& first, const Tensor& states) {
    const Tensor head = unsqueeze(first, 1);
    if (s.steps == 1) return head;
    const Tensor rest = narrow(states, 1, s.reverse ? 1 : 0, s.steps - 1);
    const Tensor joined[] = {s.reverse ? rest : head, s.reverse ? head : rest};
    return cat(joined, 1);
}

RecurrentCell parse_recurrent_cell(std::string_view word) {
    constexpr std::string_view words[] = {"lstm", "gru", "tanh", "relu"};
    for (std::uint8_t i = 0; i < 4; i++)
        if (word == words[i]) return static_cast<RecurrentCell>(i);
    check(false, "recurrent: expected lstm, gru, tanh or relu, got ", word);
    return RecurrentCell::lstm;
}

Recurrence recurrent(RecurrentCell kind, const Tensor& gates, const Tensor& weight, const Tensor& bias,
                     const Tensor& hidden, const Tensor& cell, bool reverse) {
    const RecurrentSequence s = check_arguments(kind, gates, weight, bias, hidden, cell, reverse);
    const auto packed = [](const Tensor& t) { return t.defined() ? contiguous(t) : t; };
    const Tensor input = packed(gates), first = packed(hidden), first_cell = packed(cell);
    const Recurrence out = forward(s, input, weight, bias, first, first_cell);
    const bool lstm = cell.defined();
    std::vector<Tensor> outputs{out.hidden};
    if (lstm) outputs.push_back(out.cell);
    const TensorArg inputs[] = {input, weight, bias, first, first_cell};
    const Keep keep{.inputs = 0b11111u, .outputs = lstm ? 0b11u : 0b1u};
    outputs = record("recurrent", outputs, inputs, keep, [s](const Backward& b) -> Grads {
        const RecurrentInputs x = given(s, b);
        return grad_enabled() ? composed_recurrent_backward(s, x) : fast_backward(s, x, b);
    });
    return {outputs[0], lstm ? outputs[1] : Tensor{}};
}

}  // namespace vkml

#include "vkml/ops/losses/nll.h"

#include <cmath>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/losses/nll.spv.h"
#include "vkml/ops/losses/nll_args.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/softmax/softmax.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/divisor.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

template <class V>
void nll_values(const NllArgs& a) {
    const auto* input = reinterpret_cast<const V*>(a.input);
    const auto* weights = reinterpret_cast<const V*>(a.weight);
    const auto* target = reinterpret_cast<const std::int64_t*>(a.target);
    const std::int64_t classes = a.classes, inner = a.inner;
    cpu::parallel_for(static_cast<std::int64_t>(a.count), cpu::kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            const std::int64_t t = target[i];
            V loss = 0, weight = 0;
            if (t != a.ignore) {
                if (t < 0 || t >= classes)
                    report_fault(a.fault, FaultCode::index_out_of_range, a.site, t, classes);
                else {
                    weight = weights ? weights[t] : V{1};
                    loss = -weight * input[(i / inner * classes + t) * inner + i % inner];
                }
            }
            reinterpret_cast<V*>(a.values)[i] = loss;
            reinterpret_cast<V*>(a.kept)[i] = weight;
        }
    });
}

template <class V>
void nll_gradients(const NllArgs& a, bool softmax) {
    const auto* input = reinterpret_cast<const V*>(a.input);
    const auto* g = reinterpret_cast<const V*>(a.values);
    const auto* weights = reinterpret_cast<const V*>(a.weight);
    const auto* target = reinterpret_cast<const std::int64_t*>(a.target);
    auto* dx = reinterpret_cast<V*>(a.dx);
    const std::int64_t classes = a.classes, inner = a.inner;
    const auto positions = static_cast<std::int64_t>(a.count) / std::max<std::int64_t>(classes, 1);
    cpu::parallel_for(positions, std::max<std::int64_t>(1, cpu::kGrain / 8 / std::max<std::int64_t>(classes, 1)),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin; i < end; i++) {
                              const std::int64_t t = target[i], first = i / inner * classes * inner + i % inner;
                              const bool counts = t != a.ignore && t >= 0 && t < classes;
                              const V scale = counts ? g[i] * (weights ? weights[t] : V{1}) : V{0};
                              for (std::int64_t c = 0; c < classes; c++) {
                                  const std::int64_t at = first + c * inner;
                                  dx[at] = counts && softmax ? scale * std::exp(input[at]) : V{0};
                                  if (counts && c == t)
                                      dx[at] = scale * ((softmax ? std::exp(input[at]) : V{0}) - V{1});
                              }
                          }
                      });
}

void nll_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const NllArgs*>(raw);
    if (dtype == DType::f64)
        nll_values<double>(args);
    else
        nll_values<float>(args);
}

void nll_backward_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const NllArgs*>(raw);
    if (dtype == DType::f64)
        nll_gradients<double>(args, spec[0] != 0);
    else
        nll_gradients<float>(args, spec[0] != 0);
}

constexpr Kernel nll_kernel{"nll", spv::nll, nll_cpu};
constexpr Kernel nll_backward_kernel{"nll_backward", spv::nll_backward, nll_backward_cpu};
constexpr Kernel nll_backward_rows_kernel{"nll_backward_rows", spv::nll_backward_rows};
static_assert(sizeof(NllArgs) <= kMaxPushConstants);

NllArgs arguments(const NllProblem& p, const Shape& shape) {
    NllArgs args{};
    std::int64_t inner = 1;
    for (int i = p.axis + 1; i < shape.size(); i++) inner *= shape[i];
    args.weight = p.weight.defined() ? p.weight.address() : 0;
    args.target = p.target.address();
    args.ignore = p.ignore;
    args.classes = static_cast<std::uint32_t>(shape[p.axis]);
    args.inner = static_cast<std::uint32_t>(std::max<std::int64_t>(inner, 1));
    args.site = fault_site(p.op);
    return args;
}

NllResult forward(const NllProblem& p, const Tensor& packed) {
    NllResult out{empty(p.target.shape(), packed.dtype(), packed.device()),
                  empty(p.target.shape(), packed.dtype(), packed.device())};
    if (out.loss.numel() == 0) return out;
    Stream& on = stream_of(packed);
    NllArgs args = arguments(p, packed.shape());
    args.input = packed.address();
    args.values = out.loss.address();
    args.kept = out.kept.address();
    args.fault = on.fault_address();
    args.count = static_cast<std::uint64_t>(out.loss.numel());
    on.launch(nll_kernel, packed.dtype(), Spec{0}, linear_grid(ceil_div(args.count, kThreads)), args,
              {packed, p.target, p.weight}, {out.loss, out.kept});
    return out;
}

/// The gradient of the losses: of log-probabilities, or of logits whose log_softmax is given.
Tensor backward(const NllProblem& p, const Tensor& gradient, const Shape& shape, const Tensor& log_softmax) {
    const NoGrad off;
    Tensor dx = empty(shape, gradient.dtype(), gradient.device());
    if (dx.numel() == 0) return dx;
    const Tensor g = contiguous(gradient);
    NllArgs args = arguments(p, shape);
    args.input = log_softmax.defined() ? log_softmax.address() : 0;
    args.values = g.address();
    args.dx = dx.address();
    args.count = static_cast<std::uint64_t>(dx.numel());
    Stream& on = stream_of(dx);
    const bool rows = !on.backend().synchronous() && dx.dtype() == DType::f32 && args.inner == 1 &&
                      args.classes % 4 == 0 && args.count / 4 < std::uint64_t{1} << 31 && args.input % 16 == 0;
    if (rows) {
        const Divisor fours(args.classes / 4);
        args.multiplier = fours.multiplier, args.shift = fours.shift;
    }
    on.launch(rows ? nll_backward_rows_kernel : nll_backward_kernel, dx.dtype(), Spec{log_softmax.defined() ? 1u : 0u},
              linear_grid(ceil_div(args.count, rows ? 4 * kThreads : kThreads)), args,
              {log_softmax, g, p.target, p.weight}, {dx});
    return dx;
}

/// The gradient of log-probabilities as an operator of its own: linear in g, and its gradient is the loss of what comes
/// in.
Tensor nll_gradient(const NllProblem& p, const Tensor& g, const Shape& shape) {
    return record("nll_backward", backward(p, g, shape, {}), {g}, keep_nothing,
                  [p](const Backward& b) -> Grads { return {nll_elements(p, b.grad(), false).loss}; });
}

}  // namespace

NllResult nll_elements(const NllProblem& p, const Tensor& input, bool softmax) {
    Tensor logs;
    {
        const NoGrad off;
        logs = softmax ? log_softmax(input, p.axis) : contiguous(input);
    }
    NllResult out = forward(p, logs);
    if (!softmax) {
        record(p.op, out.loss, {input}, keep_nothing,
               [p, shape = input.shape()](const Backward& b) -> Grads { return {nll_gradient(p, b.grad(), shape)}; });
        return out;
    }
    record(p.op, out.loss, {input}, keep_inputs(0), [p, logs](const Backward& b) -> Grads {
        if (!grad_enabled()) return {backward(p, b.grad(), logs.shape(), logs)};
        // Recorded: through log_softmax, of ordinary operators.
        const Tensor d = nll_gradient(p, b.grad(), logs.shape());
        return {log_softmax_backward(d, log_softmax(b.input(0), p.axis), p.axis)};
    });
    return out;
}

}  // namespace vkml

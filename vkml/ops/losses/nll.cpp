#include "vkml/ops/losses/nll.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/losses/nll.spv.h"
#include "vkml/ops/losses/nll_kernel.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/softmax/softmax.h"
#include "vkml/runtime/divisor.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::uint32_t kPieces = 4;  // of 16 bytes, an invocation of nll_backward_pieces

constexpr Kernel nll_kernel{"nll", spv::nll, nll_cpu};
constexpr Kernel nll_backward_kernel{"nll_backward", spv::nll_backward, nll_backward_cpu};
constexpr Kernel nll_backward_pieces_kernel{"nll_backward_pieces", spv::nll_backward_pieces};
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

void set_statistics(NllArgs& args, const SoftmaxStatistics& s) {
    if (!s.peak.defined()) return;
    args.peak = s.peak.address();
    args.log_sum = s.log_sum.address();
}

/// input: packed log-probabilities, or logits with their statistics.
NllResult forward(const NllProblem& p, const Tensor& input, const SoftmaxStatistics& statistics) {
    const DType wide = input.dtype() == DType::f64 ? DType::f64 : DType::f32;
    NllResult out{empty(p.target.shape(), wide, input.device()), empty(p.target.shape(), wide, input.device())};
    if (out.loss.numel() == 0) return out;
    Stream& on = stream_of(input);
    NllArgs args = arguments(p, input.shape());
    args.input = input.address();
    args.values = out.loss.address();
    args.kept = out.kept.address();
    args.fault = on.fault_address();
    args.count = static_cast<std::uint64_t>(out.loss.numel());
    set_statistics(args, statistics);
    on.launch(nll_kernel, input.dtype(), Spec{statistics.peak.defined() ? 1u : 0u},
              linear_grid(ceil_div(args.count, kThreads)), args,
              {input, statistics.peak, statistics.log_sum, p.target, p.weight}, {out.loss, out.kept});
    return out;
}

/// The gradient of the losses: of log-probabilities, or of packed logits with their statistics.
Tensor backward(const NllProblem& p, const Tensor& gradient, const Shape& shape, DType dtype, const Tensor& logits,
                const SoftmaxStatistics& statistics) {
    const NoGrad off;
    Tensor dx = empty(shape, dtype, gradient.device());
    if (dx.numel() == 0) return dx;
    const Tensor g = contiguous(gradient);
    NllArgs args = arguments(p, shape);
    args.input = logits.defined() ? logits.address() : 0;
    args.values = g.address();
    args.dx = dx.address();
    args.count = static_cast<std::uint64_t>(dx.numel());
    set_statistics(args, statistics);
    Stream& on = stream_of(dx);
    const auto width = static_cast<std::uint32_t>(16 / itemsize(dtype));
    const bool pieces = !on.backend().synchronous() && dtype != DType::f64 && args.inner == 1 &&
                        args.count < std::uint64_t{1} << 31 && args.input % 16 == 0;
    if (pieces) {
        const Divisor classes(args.classes);
        args.multiplier = classes.multiplier, args.shift = classes.shift;
    }
    on.launch(pieces ? nll_backward_pieces_kernel : nll_backward_kernel, dtype, Spec{logits.defined() ? 1u : 0u},
              linear_grid(ceil_div(args.count, pieces ? kPieces * width * kThreads : kThreads)), args,
              {logits, statistics.peak, statistics.log_sum, g, p.target, p.weight}, {dx});
    return dx;
}

/// A problem whose tensors the graph keeps, as inputs 1 and 2 of a node, so that it notices when they have changed.
class Kept {
  public:
    explicit Kept(const NllProblem& p) : rest_{p.op, {}, {}, p.ignore, p.axis}, weighted_(p.weight.defined()) {}
    Keep keep(Keep more = keep_nothing) const {
        more.inputs |= weighted_ ? 6u : 2u;
        return more;
    }
    NllProblem problem(const Backward& b) const {
        NllProblem p = rest_;
        p.target = b.input(1);
        if (weighted_) p.weight = b.input(2);
        return p;
    }

  private:
    NllProblem rest_;
    bool weighted_;
};

/// The gradient of log-probabilities as an operator of its own: linear in g, and its gradient is the loss of what comes
/// in.
Tensor nll_gradient(const NllProblem& p, const Tensor& g, const Shape& shape, DType dtype) {
    const Kept kept(p);
    return record("nll_backward", backward(p, g, shape, dtype, {}, {}), {g, p.target, p.weight}, kept.keep(),
                  [kept](const Backward& b) -> Grads {
                      return {nll_elements(kept.problem(b), b.grad(), false).loss, Tensor{}, Tensor{}};
                  });
}

}  // namespace

NllResult nll_elements(const NllProblem& p, const Tensor& input, bool softmax) {
    Tensor packed;
    SoftmaxStatistics statistics;
    {
        const NoGrad off;
        packed = contiguous(input);
        if (softmax) statistics = softmax_statistics(p.op, packed, p.axis);
    }
    NllResult out = forward(p, packed, statistics);
    const Kept kept(p);
    if (!softmax) {
        record(p.op, out.loss, {input, p.target, p.weight}, kept.keep(),
               [kept, shape = input.shape(), dtype = input.dtype()](const Backward& b) -> Grads {
                   return {nll_gradient(kept.problem(b), b.grad(), shape, dtype), Tensor{}, Tensor{}};
               });
        return out;
    }
    record(p.op, out.loss, {input, p.target, p.weight}, kept.keep(keep_inputs(0)),
           [kept, statistics](const Backward& b) -> Grads {
               const NllProblem q = kept.problem(b);
               const Tensor x = b.input(0), &g = b.grad();
               if (!grad_enabled())
                   return {backward(q, g, x.shape(), x.dtype(), contiguous(x), statistics), Tensor{}, Tensor{}};
               // Recorded: through log_softmax, of ordinary operators.
               const Tensor wide = cast(x, g.dtype()), d = nll_gradient(q, g, x.shape(), wide.dtype());
               return {cast(log_softmax_backward(d, log_softmax(wide, q.axis), q.axis), x.dtype()), Tensor{}, Tensor{}};
           });
    return out;
}

}  // namespace vkml

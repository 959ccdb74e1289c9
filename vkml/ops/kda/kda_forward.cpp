#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/kda/kda_fast.h"
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/ops/kda/kda_launch.h"
#include "vkml/runtime/grid.h"

namespace vkml {
namespace kda {
namespace {

/// Spacing of the states kept for the gradient, in tokens: 256, or 128 where the strict backward then takes fewer
/// slabs.
constexpr std::int64_t kKeptSpacing = 256;
std::int64_t kept_spacing(const Problem& p, KdaPrecision precision) {
    if (precision == KdaPrecision::fast) return kKeptSpacing;
    const auto slabs = [&](std::int64_t spacing) {
        return ceil_div(static_cast<std::uint64_t>(p.tiles()),
                        static_cast<std::uint64_t>(plan_slabs(p, true, spacing / kTile).tiles));
    };
    return slabs(kKeptSpacing / 2) < slabs(kKeptSpacing) ? kKeptSpacing / 2 : kKeptSpacing;
}

/// A new packed state equal to the given one, or zeros.
Tensor copy_of_state(const Problem& p, const Tensor& state) {
    const NoGrad off;
    return state.defined() ? clone(state) : zeros(p.state_shape(), p.wide, p.device);
}

/// Nothing to compute: T, B or H is 0.
KdaOutput forward_empty(const Problem& p, const Inputs& in, bool retain) {
    KdaOutput out{empty(p.value_shape(), p.dtype, p.device), copy_of_state(p, in.initial_state), {}};
    if (retain) out.boundaries = empty({p.chunks(), p.B, p.HV, p.K, p.V}, p.wide, p.device);
    return out;
}

void copy_first_boundary(const Problem& p, const Inputs& in, const Tensor& boundaries) {
    const NoGrad off;
    const Shape shape{1, p.B, p.HV, p.K, p.V};
    if (in.initial_state.defined())
        copy_into(boundaries, in.initial_state.view(expand(in.initial_state.layout(), shape)));
    else
        fill_into(boundaries, 0.0);
}

}  // namespace

void run_forward(std::string_view op, const Problem& p, const Inputs& in, const KdaOutput& out, std::int64_t spacing,
                 KdaPrecision precision) {
    if (precision == KdaPrecision::fast && !p.device.is_cpu() && run_forward_fast(op, p, in, out, spacing)) return;
    const bool wanted = out.boundaries.defined();
    const bool aligned = !wanted || spacing % kTile == 0 || spacing >= p.T;
    const bool keep = !aligned;  // states inside a tile are rebuilt from the residuals
    Slabs plan = plan_slabs(p, keep);
    // Slabs of one length: a short last one would not fill a device.
    const std::int64_t count = (p.tiles() + plan.tiles - 1) / plan.tiles;
    plan.tiles = (p.tiles() + count - 1) / count;
    const Storage workspace = stream(p.device).allocate(plan.workspace());
    Launcher launch(op, p, in, workspace);
    const StateView initial = state_view(strided(in.initial_state)), running = state_view(strided(out.final_state));
    const std::int64_t spacing_tiles = spacing >= p.T ? p.tiles() : spacing / kTile;
    for (std::int64_t head = 0; head < p.heads(); head += plan.heads)
        for (std::int64_t tile = 0; tile < p.tiles(); tile += plan.tiles) {
            const Slab slab{head, std::min(plan.heads, p.heads() - head), tile, std::min(plan.tiles, p.tiles() - tile)};
            launch.prepare(slab, keep);
            launch.scan(slab, keep, tile == 0 ? initial : running, out.final_state.storage(), out.final_state.address(),
                        out.output, aligned ? out.boundaries : Tensor{}, spacing_tiles);
            if (!aligned) launch.boundary(slab, out.boundaries, spacing);
        }
}

namespace {

KdaOutput forward(const Problem& p, const Inputs& in, bool retain, std::int64_t spacing, KdaPrecision precision) {
    KdaOutput out{empty(p.value_shape(), p.dtype, p.device), empty(p.state_shape(), p.wide, p.device), {}};
    if (retain) out.boundaries = empty({(p.T - 1) / spacing + 1, p.B, p.HV, p.K, p.V}, p.wide, p.device);
    if (p.T == 1) {
        run_decode(p, in, out.output, out.final_state);
        if (retain) copy_first_boundary(p, in, out.boundaries);
    } else {
        run_forward("chunk_kda", p, in, out, spacing, precision);
    }
    return out;
}

/// Recorded on the gradients where a graph of them is asked for, so that a second derivative fails in words.
void refuse_second_derivatives(const std::vector<Tensor>& gradients, const Backward& b, int inputs) {
    std::vector<Tensor> sources;
    for (int i = 0; i < inputs; i++) sources.push_back(b.input(i));
    for (int i : {0, 1})
        if (b.grad(i).defined()) sources.push_back(b.grad(i));
    const std::vector<TensorArg> args(sources.begin(), sources.end());
    record("chunk_kda_backward", gradients, args, keep_nothing, [](const Backward&) -> Grads {
        fail<NotImplementedError>(
            "chunk_kda: expected a first derivative, got a second one; naive_recurrent_kda has derivatives of any "
            "order");
    });
}

Grads gradients(const Backward& b, const Tensor& boundaries, double scale, std::int64_t spacing, bool has_state,
                KdaPrecision precision) {
    KdaGradients g;
    {
        const NoGrad off;
        g = chunk_kda_backward(b.input(0), b.input(1), b.input(2), b.input(3), b.input(4),
                               has_state ? b.input(5) : Tensor{}, b.grad(0), b.grad(1), boundaries, scale, spacing,
                               precision);
    }
    Grads out{g.query, g.key, g.value, g.log_decay, g.beta, has_state ? g.initial_state : Tensor{}};
    if (grad_enabled()) refuse_second_derivatives(out, b, has_state ? 6 : 5);
    return out;
}

}  // namespace
}  // namespace kda

KdaOutput chunk_kda(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay,
                    const Tensor& beta, const Tensor& initial_state, std::optional<double> scale,
                    std::int64_t chunk_size, bool retain_boundaries, KdaPrecision precision) {
    const kda::Inputs in{query, key, value, log_decay, beta, initial_state};
    const kda::Problem p = kda::check_inputs("chunk_kda", in, scale, chunk_size);
    if (retain_boundaries) kda::check_boundary_count("chunk_kda", p);
    kda::check_widths("chunk_kda", p);
    const TensorArg args[] = {query, key, value, log_decay, beta, initial_state};
    const bool tracked = tracks(args);
    // The gradient starts from the caller's boundaries if tiles start there, else from some of its own.
    const bool own = tracked && !retain_boundaries && p.T > kda::kKeptSpacing;
    const std::int64_t spacing = own ? kda::kept_spacing(p, precision) : chunk_size;
    KdaOutput out = p.empty() ? kda::forward_empty(p, in, retain_boundaries)
                              : kda::forward(p, in, retain_boundaries || own, spacing, precision);
    const Tensor boundaries = out.boundaries;
    if (own) out.boundaries = {};
    if (!tracked) return out;
    const bool has_state = initial_state.defined();
    Keep keep = keep_inputs(0, 1, 2, 3, 4);
    if (has_state) keep.inputs |= 1u << 5;
    record("chunk_kda", std::vector<Tensor>{out.output, out.final_state}, args, keep,
           [=, s = p.scale](const Backward& b) {
               return kda::gradients(b, boundaries, s, spacing, has_state, precision);
           });
    return out;
}

}  // namespace vkml

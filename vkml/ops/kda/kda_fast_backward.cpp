#include <algorithm>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_fast.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"

namespace vkml::kda {
namespace {

// One grid axis holds a workgroup for each slot.
constexpr std::int64_t kMostSlots = 65535;
// Where no states are given, the spacing of the backward's own and the bytes they may take.
constexpr std::int64_t kOwnSpacing = 256;
constexpr std::size_t kMostOwnStates = std::size_t{128} << 20;

struct BackwardProblem {
    FastProblem f;
    Strided grad_output;
};

/// Tiles between the stored states that the backward starts from.
std::int64_t stretch_of(const FastProblem& f) {
    const std::int64_t spacing = f.boundaries ? f.spacing : kOwnSpacing;
    return spacing >= f.p.T ? f.p.tiles() : spacing / kTile;
}

std::int64_t slots_of(std::size_t slot_bytes) {
    return std::min<std::int64_t>(static_cast<std::int64_t>(most_workspace() / slot_bytes), kMostSlots);
}

std::size_t own_states(const FastProblem& f) {
    return static_cast<std::size_t>((f.p.T - 1) / kOwnSpacing + 1) *
           static_cast<std::size_t>(numel(f.p.state_shape())) * sizeof(float);
}

const char* refuses_backward(const BackwardProblem& b, std::size_t slot_bytes) {
    if (const char* refusal = refuses_fast_problem(b.f)) return refusal;
    if (b.f.p.group() > 1) return "value heads share a query head";
    if (!b.grad_output.tensor.defined()) return "the output has no gradient";
    if (!rows_aligned(b.grad_output)) return "a row of the output's gradient does not begin at 16 bytes";
    if (slots_of(slot_bytes) < stretch_of(b.f)) return "the stored states are too far apart for the workspace";
    if (!b.f.boundaries && own_states(b.f) > kMostOwnStates) return "no states were stored, and they are too many";
    return nullptr;
}
const char* refuses_cooperative(const BackwardProblem& b, const Limits& limits) {
    const char* refusal = refuses_device(limits);
    return refusal ? refusal : refuses_backward(b, fast_kernels(0).slot_backward);
}
const char* refuses_emulated(const BackwardProblem& b, const Limits&) {
    const char* refusal = refuses_emulation();
    return refusal ? refusal : refuses_backward(b, fast_kernels(1).slot_backward);
}
constexpr Variant<BackwardProblem> kTable[] = {
    {"cooperative", refuses_cooperative}, {"emulated", refuses_emulated}, {"strict", never<BackwardProblem>}};

std::uint32_t word(std::int64_t n) { return static_cast<std::uint32_t>(std::min<std::int64_t>(n, 0x7fffffff)); }

std::uint32_t widths_of(const FastSlab& slab) { return static_cast<std::uint32_t>(slab.tiles - 1) << 16; }

/// Whole stretches, as many heads as fit, slabs of equal length.
FastSlab plan(const FastProblem& f, std::size_t slot_bytes) {
    const std::int64_t slots = slots_of(slot_bytes), stretch = stretch_of(f), tiles = f.p.tiles();
    std::int64_t heads = std::min<std::int64_t>(f.p.heads(), 512);
    while (heads > 1 && slots / heads < stretch) heads = (heads + 1) / 2;
    const std::int64_t most = std::max<std::int64_t>(slots / heads / stretch, 1) * stretch;
    const std::int64_t count = (tiles + most - 1) / most, even = (tiles + count - 1) / count;
    return {0, heads, 0, std::min(tiles, (even + stretch - 1) / stretch * stretch)};
}

/// States every kOwnSpacing tokens, by the forward.
Tensor states_of(std::string_view op, const Problem& p, const Inputs& in) {
    const std::int64_t count = (p.T - 1) / kOwnSpacing + 1;
    const KdaOutput out{empty(p.value_shape(), p.dtype, p.device), empty(p.state_shape(), p.wide, p.device),
                        empty({count, p.B, p.HV, p.K, p.V}, p.wide, p.device)};
    if (count == 1)
        start_state(out.boundaries, in.initial_state);
    else
        run_forward_fast(op, p, in, out, kOwnSpacing);
    return out.boundaries;
}

void states(const FastProblem& f, const Kernel& kernel, const FastSlab& slab, const Storage& workspace,
            const Tensor& boundaries) {
    const std::int64_t stretch = stretch_of(f);
    KdaFastScanArgs a{};
    a.workspace = workspace->address;
    a.value = f.value.tensor.address();
    a.v_b = f.value.s[0];
    a.v_h = f.value.s[1];
    a.v_t = f.value.s[2];
    a.boundaries = boundaries.address();
    a.tokens = word(f.p.T);
    a.tile0 = word(slab.tile0);
    a.widths = widths_of(slab);
    a.heads_packed = heads_packed(f.p);
    a.head0 = word(slab.head0);
    a.heads = word(f.p.heads());
    a.spacing = word(stretch);
    stream(f.p.device)
        .launch(kernel, f.p.dtype, {}, {word(slab.heads * ((slab.tiles + stretch - 1) / stretch) * 2)}, a,
                {boundaries, f.value.tensor}, {workspace});
}

void reverse(const BackwardProblem& b, const Kernel& kernel, const FastSlab& slab, const Storage& workspace,
             const Tensor& state) {
    KdaReverseArgs a{};
    a.workspace = workspace->address;
    a.grad_output = b.grad_output.tensor.address();
    a.state_out = state.address();
    a.o_b = b.grad_output.s[0];
    a.o_h = b.grad_output.s[1];
    a.o_t = b.grad_output.s[2];
    a.tokens = word(b.f.p.T);
    a.tile0 = word(slab.tile0);
    a.widths = widths_of(slab);
    a.heads_packed = heads_packed(b.f.p);
    a.head0 = word(slab.head0);
    stream(b.f.p.device)
        .launch(kernel, b.f.p.dtype, {}, {word(slab.heads * 4)}, a, {b.grad_output.tensor}, {workspace, state});
}

void epilogue(const FastProblem& f, const Kernel& kernel, const FastSlab& slab, const Storage& workspace,
              const KdaGradients& out) {
    const KdaEpilogueArgs a{workspace->address,
                            f.query.tensor.address(),
                            f.key.tensor.address(),
                            f.decay.tensor.address(),
                            out.query.address(),
                            out.key.address(),
                            out.value.address(),
                            out.log_decay.address(),
                            out.beta.address(),
                            f.query.s[0],
                            f.query.s[1],
                            f.query.s[2],
                            f.key.s[0],
                            f.key.s[1],
                            f.key.s[2],
                            f.decay.s[0],
                            f.decay.s[1],
                            f.decay.s[2],
                            word(f.p.T),
                            word(slab.tile0),
                            widths_of(slab),
                            heads_packed(f.p),
                            word(slab.head0)};
    stream(f.p.device)
        .launch(kernel, f.p.dtype, {}, {word(slab.heads * slab.tiles)}, a,
                {f.query.tensor, f.key.tensor, f.decay.tensor},
                {workspace, out.query, out.key, out.value, out.log_decay, out.beta});
}

}  // namespace

bool run_backward_fast(std::string_view op, const Problem& p, const Inputs& in, const Tensor& grad_output,
                       const Tensor& grad_final_state, const Tensor& boundaries, const KdaGradients& out) {
    const BackwardProblem b{fast_problem(p, in, p.chunk_size, boundaries.defined()), strided(grad_output)};
    Stream& on = stream(p.device);
    const std::size_t row = choose("kda.fast_backward", op, kTable, b, on.limits());
    if (row + 1 == std::size(kTable)) return false;
    const FastKernels& kernels = fast_kernels(row);
    const NoGrad off;
    const Tensor from = boundaries.defined() ? contiguous(boundaries) : states_of(op, p, in);
    start_state(out.initial_state, grad_final_state);  // the reverse scan runs in place from here
    const FastSlab most = plan(b.f, kernels.slot_backward);
    const Storage workspace = on.allocate(static_cast<std::size_t>(most.heads * most.tiles) * kernels.slot_backward);
    const std::int64_t count = (p.tiles() + most.tiles - 1) / most.tiles;
    for (std::int64_t head = 0; head < p.heads(); head += most.heads)
        for (std::int64_t i = count - 1; i >= 0; i--) {
            const FastSlab slab{head, std::min(most.heads, p.heads() - head), i * most.tiles,
                                std::min(most.tiles, p.tiles() - i * most.tiles)};
            fast_prepare(b.f, kernels.prepare_backward, slab, workspace);
            states(b.f, kernels.states, slab, workspace, from);
            reverse(b, kernels.reverse, slab, workspace, out.initial_state);
            epilogue(b.f, kernels.epilogue, slab, workspace, out);
        }
    return true;
}

}  // namespace vkml::kda

#include <bit>

#include "vkml/autograd/node.h"
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/ops/kda/kda_kernel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace kda {

void run_decode(const Problem& p, const Inputs& in, const Tensor& output, const Tensor& state_out) {
    const Strided q = strided(in.query), k = strided(in.key), v = strided(in.value), g = strided(in.log_decay),
                  b = strided(in.beta);
    const Strided s = strided(in.initial_state);
    const auto word = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    const auto extent = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
    KdaDecodeArgs a{q.tensor.address(),
                    k.tensor.address(),
                    v.tensor.address(),
                    g.tensor.address(),
                    b.tensor.address(),
                    s.tensor.defined() ? s.tensor.address() : 0,
                    state_out.address(),
                    output.address(),
                    q.s[0],
                    q.s[1],
                    k.s[0],
                    k.s[1],
                    v.s[0],
                    v.s[1],
                    g.s[0],
                    g.s[1],
                    b.s[0],
                    b.s[1],
                    s.s[0],
                    s.s[1],
                    static_cast<float>(p.scale),
                    extent(p.heads()),
                    (extent(p.K - 1) & 0xffu) | (extent(p.V - 1) & 0xffu) << 8,
                    heads_packed(p)};
    const auto bits = std::bit_cast<std::uint64_t>(p.scale);
    const bool packed =
        !s.tensor.defined() || (s.s[3] == 1 && (s.s[0] | s.s[1] | s.s[2]) % 4 == 0 && s.tensor.address() % 16 == 0);
    const bool plain =
        !s.tensor.defined() || (s.s[3] <= 1 && (s.s[2] == p.V || p.K == 1));  // rows of V, one after the other
    const bool aligned = packed && plain && p.V % 4 == 0 && state_out.address() % 16 == 0;
    const Spec spec = p.device.is_cpu()
                          ? Spec{q.s[3],      k.s[3],       v.s[3], g.s[3], aligned, extent(p.K), extent(p.V),
                                 extent(p.H), extent(p.HV), s.s[2], s.s[3], 16,      word(bits),  word(bits >> 32)}
                          : Spec{q.s[3],
                                 k.s[3],
                                 v.s[3],
                                 g.s[3],
                                 aligned,
                                 plain,
                                 plain ? 0u : s.s[2],
                                 plain ? 0u : s.s[3],
                                 (extent(p.K) + 7) / 8,
                                 p.K % 8 == 0 && p.V % 64 == 0};
    const std::uint64_t slices = p.device.is_cpu() ? 1 : ceil_div(static_cast<std::uint64_t>(p.V), 64);
    stream(p.device).launch(decode_kernel, p.dtype, spec, linear_grid(static_cast<std::uint64_t>(p.heads()) * slices),
                            a, {q.tensor, k.tensor, v.tensor, g.tensor, b.tensor, s.tensor}, {output, state_out});
}

}  // namespace kda

std::pair<Tensor, Tensor> kda_decode(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& log_decay, const Tensor& beta, const Tensor& state,
                                     std::optional<double> scale, bool update_state) {
    constexpr std::string_view op = "kda_decode";
    const kda::Inputs in{query, key, value, log_decay, beta, state, "state"};
    check(state.defined(), op, ": state: expected a tensor of shape [B, HV, K, V], got an undefined tensor");
    const kda::Problem p = kda::check_inputs(op, in, scale, 1);
    check(p.T == 1, op, ": query: expected T = 1, got ", p.T);
    kda::check_widths(op, p);
    check(!update_state || state.is_contiguous(), op, ": state: expected a contiguous tensor to update, got strides ",
          state.strides());
    const TensorArg args[] = {query, key, value, log_decay, beta, state};
    check<Error>(!tracks(args), op,
                 ": expected inputs without gradients, got one that requires grad; use chunk_kda or no_grad()");
    const Tensor output = empty(p.value_shape(), p.dtype, p.device);
    const Tensor after = update_state ? state : empty(p.state_shape(), p.wide, p.device);
    if (!p.empty()) kda::run_decode(p, in, output, after);
    if (update_state) wrote_in_place(state);
    return {output, after};
}

}  // namespace vkml

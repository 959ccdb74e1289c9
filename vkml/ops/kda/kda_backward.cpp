#include <algorithm>
#include <numeric>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/kda/kda_fast.h"
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/ops/kda/kda_launch.h"
#include "vkml/ops/shape/shape.h"

namespace vkml {
namespace kda {
namespace {

/// States the prepass may keep, one per slab, in bytes.
constexpr std::size_t kMostCheckpoints = std::size_t{128} << 20;

/// The states before the slabs of some heads.
class Checkpoints {
  public:
    Checkpoints(const Problem& p, const Slabs& plan)
        : state_(p.K * p.V), item_(itemsize(p.wide)), tiles_(plan.tiles), heads_(plan.heads) {
        strides_[0] = static_cast<std::uint32_t>(p.HV * state_);
        strides_[1] = static_cast<std::uint32_t>(state_);
        strides_[2] = static_cast<std::uint32_t>(p.V);
        strides_[3] = 1;
        const std::int64_t slabs = (p.tiles() + plan.tiles - 1) / plan.tiles;
        storage_ = stream(p.device).allocate(static_cast<std::size_t>((slabs - 1) * plan.heads * state_) * item_);
    }
    /// Where the state of head 0 before the slab at `tile` would lie; only the heads from head0 on are there.
    Address address(std::int64_t head0, std::int64_t tile) const {
        const std::int64_t slab = tile / tiles_ - 1;
        return storage_->address + static_cast<Address>((slab * heads_ - head0) * state_) * item_;
    }
    StateView view(std::int64_t head0, std::int64_t tile) const {
        StateView out{{}, storage_, address(head0, tile), {}};
        std::copy(std::begin(strides_), std::end(strides_), std::begin(out.s));
        return out;
    }
    const Storage& storage() const { return storage_; }

  private:
    std::int64_t state_;
    std::size_t item_;
    std::int64_t tiles_, heads_;
    std::uint32_t strides_[4] = {};
    Storage storage_;
};

Slabs plan(const Problem& p, std::int64_t align, bool checkpoints) {
    Slabs s = plan_slabs(p, true, align);
    const auto bytes = [&] {
        return static_cast<std::size_t>((p.tiles() / s.tiles) * s.heads * p.K * p.V) * itemsize(p.wide);
    };
    while (checkpoints && s.heads > p.group() && bytes() > kMostCheckpoints) {
        s.heads = std::max(p.group(), s.heads / 2 / p.group() * p.group());
        s.tiles = std::min(p.tiles(), s.tiles * 2);
    }
    return s;
}

/// The state before the slab at `tile`, from wherever it is known.
StateView state_before(const Problem& p, const Inputs& in, const Tensor& boundaries, const Checkpoints* kept,
                       std::int64_t head0, std::int64_t tile) {
    if (tile == 0) return state_view(strided(in.initial_state));
    if (kept) return kept->view(head0, tile);
    const NoGrad off;
    return state_view(strided(select(boundaries, 0, tile * kTile / p.chunk_size)));
}

}  // namespace

void run_backward(std::string_view op, const Problem& p, const Inputs& in, const Tensor& grad_output,
                  const Tensor& grad_final_state, const Tensor& boundaries, const KdaGradients& out,
                  KdaPrecision precision) {
    if (precision == KdaPrecision::fast && !p.device.is_cpu() &&
        run_backward_fast(op, p, in, grad_output, grad_final_state, boundaries, out))
        return;
    // Slabs start where a tile and a chunk do, if a slab can be that long.
    const std::int64_t align =
        boundaries.defined() && p.chunk_size < p.T ? p.chunk_size / std::gcd(p.chunk_size, kTile) : 1;
    Slabs slabs = plan(p, align, !boundaries.defined());
    const bool known = boundaries.defined() && slabs.tiles * kTile % p.chunk_size == 0;
    const bool prepass = slabs.tiles < p.tiles() && !known;
    if (prepass) slabs = plan(p, 1, true);
    const Storage workspace = stream(p.device).allocate(slabs.workspace());
    Launcher launch(op, p, in, workspace);
    const Strided g = strided(grad_output);
    const StateView last = state_view(strided(grad_final_state)), running = state_view(strided(out.initial_state));
    std::optional<Checkpoints> kept;
    if (prepass) kept.emplace(p, slabs);
    const std::int64_t count = (p.tiles() + slabs.tiles - 1) / slabs.tiles;
    for (std::int64_t head = 0; head < p.heads(); head += slabs.heads) {
        const auto slab_of = [&](std::int64_t i) {
            return Slab{head, std::min(slabs.heads, p.heads() - head), i * slabs.tiles,
                        std::min(slabs.tiles, p.tiles() - i * slabs.tiles)};
        };
        for (std::int64_t i = 0; prepass && i + 1 < count; i++) {
            const Slab slab = slab_of(i);
            launch.prepare(slab, false);
            launch.scan(slab, false, state_before(p, in, {}, &*kept, head, slab.tile0), kept->storage(),
                        kept->address(head, slab.tile0 + slab.tiles), {}, {}, 0);
        }
        for (std::int64_t i = count - 1; i >= 0; i--) {
            const Slab slab = slab_of(i);
            launch.prepare(slab, true);
            launch.scan(slab, true, state_before(p, in, boundaries, kept ? &*kept : nullptr, head, slab.tile0), {}, 0,
                        {}, {}, 0);
            launch.reverse(slab, g, i + 1 == count ? last : running, out.initial_state);
            launch.epilogue(slab, out);
        }
    }
}

namespace {

KdaGradients backward_empty(const Problem& p, const Inputs& in, const Tensor& grad_final_state) {
    const NoGrad off;
    KdaGradients out{empty(in.query.shape(), p.dtype, p.device), empty(in.query.shape(), p.dtype, p.device),
                     empty(p.value_shape(), p.dtype, p.device),  empty(in.log_decay.shape(), p.wide, p.device),
                     empty(in.beta.shape(), p.wide, p.device),   {}};
    out.initial_state = grad_final_state.defined() ? clone(grad_final_state) : zeros(p.state_shape(), p.wide, p.device);
    return out;
}

}  // namespace
}  // namespace kda

KdaGradients chunk_kda_backward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay,
                                const Tensor& beta, const Tensor& initial_state, const Tensor& grad_output,
                                const Tensor& grad_final_state, const Tensor& boundaries, std::optional<double> scale,
                                std::int64_t chunk_size, KdaPrecision precision) {
    constexpr std::string_view op = "chunk_kda_backward";
    const kda::Inputs in{query, key, value, log_decay, beta, initial_state};
    const kda::Problem p = kda::check_inputs(op, in, scale, chunk_size);
    kda::check_gradients(op, p, grad_output, grad_final_state, boundaries);
    kda::check_widths(op, p);
    if (p.empty()) return kda::backward_empty(p, in, grad_final_state);
    KdaGradients out{empty(query.shape(), p.dtype, p.device),   empty(query.shape(), p.dtype, p.device),
                     empty(p.value_shape(), p.dtype, p.device), empty(log_decay.shape(), p.wide, p.device),
                     empty(beta.shape(), p.wide, p.device),     empty(p.state_shape(), p.wide, p.device)};
    kda::run_backward(op, p, in, grad_output, grad_final_state, boundaries, out, precision);
    return out;
}

}  // namespace vkml

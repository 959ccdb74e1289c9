#include "vkml/ops/kda/kda_launch.h"

#include <algorithm>
#include <atomic>

#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_combine_args.h"
#include "vkml/ops/kda/kda_fast.h"
#include "vkml/ops/kda/kda_kernel.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"

namespace vkml::kda {
namespace {

std::uint32_t word(std::int64_t n) { return static_cast<std::uint32_t>(std::min<std::int64_t>(n, 0x7fffffff)); }

/// K, V, tiles and heads as the Vulkan kernels take them; the CPU's come by specialization constants.
std::uint32_t widths_of(const Problem& p, std::int64_t tiles, bool keep) {
    const auto byte = [](std::int64_t n) { return static_cast<std::uint32_t>(n - 1) & 0xffu; };
    return byte(p.K) | byte(p.V) << 8 | static_cast<std::uint32_t>(tiles - 1) << 16 |
           static_cast<std::uint32_t>(keep) << 31;
}

/// Variants of the steps, and value columns of a workgroup of the scans.
struct Path {
    const Kernel *prepare, *scan, *reverse, *epilogue;
    std::uint32_t scan_columns, reverse_columns;
};
constexpr Path kPaths[] = {
    {&prepare_wide_kernel, &scan_deep_kernel, &reverse_wide_kernel, &epilogue_deep_kernel, 16, 32},
    {&prepare_wide_kernel, &scan_wide_kernel, &reverse_wide_kernel, &epilogue_wide_kernel, 16, 32},
    {&prepare_kernel, &scan_half_kernel, &reverse_half_kernel, &epilogue_kernel, 16, 16},
    {&prepare_kernel, &scan_narrow_kernel, &reverse_narrow_kernel, &epilogue_kernel, 8, 8}};

std::atomic<int> forced_path{-1};
bool other_forced(int path) {
    const int forced = forced_path.load(std::memory_order_relaxed);
    return forced >= 0 && forced != path;
}

const char* refuses_width(const Problem& p, const Limits& limits) {
    if (p.K > 128) return "32 columns of a state of more than 128 rows do not fit";
    return limits.max_workgroup_invocations < 256 ? "the device has no workgroups of 256" : nullptr;
}
const char* refuses_deep(const Problem& p, const Limits& limits) {
    if (other_forced(0)) return "another path is asked for by name";
    if (const char* reason = refuses_width(p, limits)) return reason;
    return limits.shared_memory < 49152 ? "the device has less than 48 KiB of shared memory" : nullptr;
}
const char* refuses_wide(const Problem& p, const Limits& limits) {
    if (other_forced(1)) return "another path is asked for by name";
    if (const char* reason = refuses_width(p, limits)) return reason;
    return limits.shared_memory < 32768 ? "the device has less than 32 KiB of shared memory" : nullptr;
}
const char* refuses_half(const Problem&, const Limits& limits) {
    if (other_forced(2)) return "another path is asked for by name";
    return limits.shared_memory < 24576 ? "the device has less than 24 KiB of shared memory" : nullptr;
}
constexpr Variant<Problem> kTable[] = {
    {"deep", refuses_deep}, {"wide", refuses_wide}, {"half", refuses_half}, {"narrow", never<Problem>}};

}  // namespace

void force_path(std::string_view name) {
    int path = -1;
    for (int i = 0; i < static_cast<int>(std::size(kTable)); i++)
        if (kTable[i].name == name) path = i;
    const bool emulated = name == "emulated";
    check(name.empty() || emulated || path >= 0, "force_path: expected deep, wide, half, narrow or emulated, got ",
          name);
    force_emulation(emulated);
    forced_path.store(path, std::memory_order_relaxed);
}

StateView state_view(const Strided& state) {
    StateView view;
    if (!state.tensor.defined()) return view;
    view.tensor = state.tensor;
    view.storage = state.tensor.storage();
    view.address = state.tensor.address();
    std::copy(std::begin(state.s), std::end(state.s), std::begin(view.s));
    return view;
}

Launcher::Launcher(std::string_view op, const Problem& p, const Inputs& in, const Storage& workspace)
    : p_(p),
      stream_(stream(p.device)),
      workspace_(workspace),
      query_(strided(in.query)),
      key_(strided(in.key)),
      value_(strided(in.value)),
      decay_(strided(in.log_decay)),
      beta_(strided(in.beta)) {
    if (p.device.is_cpu()) return;
    path_ = choose("kda.path", op, kTable, p, stream_.limits());
    segment_ = segment_tiles(op, p);
}

std::uint32_t Launcher::slices(std::uint32_t width) const {
    return p_.device.is_cpu() ? 1 : static_cast<std::uint32_t>(ceil_div(padded(p_, p_.V), width));
}

void Launcher::prepare(const Slab& slab, bool keep) {
    const std::int64_t first = slab.tile0 * kTile;
    const auto from = [&](const Strided& x) {
        return x.tensor.address() + static_cast<Address>(first) * x.s[2] * itemsize(x.tensor.dtype());
    };
    KdaPrepareArgs a{from(query_),       from(key_),
                     from(value_),       from(decay_),
                     from(beta_),        workspace_->address,
                     query_.s[0],        query_.s[1],
                     query_.s[2],        key_.s[0],
                     key_.s[1],          key_.s[2],
                     value_.s[0],        value_.s[1],
                     value_.s[2],        decay_.s[0],
                     decay_.s[1],        decay_.s[2],
                     beta_.s[0],         beta_.s[1],
                     beta_.s[2],         static_cast<float>(p_.scale),
                     word(p_.T - first), widths_of(p_, slab.tiles, keep),
                     heads_packed(p_),   word(slab.head0)};
    const Spec spec = spec_of(p_, {query_.s[3], key_.s[3], value_.s[3], decay_.s[3]}, slab.tiles, keep);
    stream_.launch(*kPaths[path_].prepare, p_.dtype, spec, {word(slab.heads * slab.tiles)}, a,
                   {query_.tensor, key_.tensor, value_.tensor, decay_.tensor, beta_.tensor}, {workspace_});
}

void Launcher::scan(const Slab& slab, bool keep, const StateView& from, const Storage& to, Address to_address,
                    const Tensor& output, const Tensor& boundaries, std::int64_t spacing_tiles) {
    const auto address = [](const Tensor& t) { return t.defined() ? t.address() : 0; };
    const KdaScanArgs a{workspace_->address, from.address,     to_address,       address(output),
                        address(boundaries), from.s[0],        from.s[1],        from.s[2],
                        from.s[3],           word(p_.T),       word(slab.tile0), widths_of(p_, slab.tiles, keep),
                        heads_packed(p_),    word(slab.head0), word(p_.heads()), word(spacing_tiles)};
    if (segment_ > 0 && slab.tiles > segment_) return scan_segments(slab, from, a, to, output, boundaries);
    stream_.launch(*kPaths[path_].scan, p_.dtype, spec_of(p_, {0, 0, 0, 0, output.defined()}, slab.tiles, keep),
                   {word(slab.heads) * slices(kPaths[path_].scan_columns)}, a, {from.storage},
                   {workspace_, to, output, boundaries});
}

void Launcher::scan_segments(const Slab& slab, const StateView& from, const KdaScanArgs& args, const Storage& to,
                             const Tensor& output, const Tensor& boundaries) {
    const bool half = refuses_half(p_, stream_.limits()) == nullptr;
    const std::int64_t kp = padded(p_, p_.K), vp = padded(p_, p_.V), width = half ? 16 : 8;
    const std::int64_t segments = (slab.tiles + segment_ - 1) / segment_;
    const auto slices = [&](std::int64_t n) { return (n + width - 1) / width; };
    if (!maps_) {
        maps_ =
            stream_.allocate(static_cast<std::size_t>(slab.heads * (segments - 1) * kp * (kp + vp)) * sizeof(float));
        states_ = stream_.allocate(static_cast<std::size_t>(slab.heads * segments * p_.K * p_.V) * sizeof(float));
    }
    KdaScanArgs map = args;
    map.state_in = map.output = map.boundaries = 0;
    map.state_out = maps_->address;
    map.s_b = word(segment_);  // segmentTiles() of the kernel
    stream_.launch(half ? map_half_kernel : map_narrow_kernel, DType::f32, {},
                   {word(slab.heads * (segments - 1) * (slices(kp) + slices(vp)))}, map, {workspace_}, {maps_});
    const KdaCombineArgs combine{maps_->address, from.address, states_->address,  from.s[0],  from.s[1],     from.s[2],
                                 from.s[3],      args.widths,  args.heads_packed, args.head0, word(segments)};
    stream_.launch(combine_kernel, DType::f32, {}, {word(slab.heads * ((vp + 7) / 8))}, combine, {maps_, from.storage},
                   {states_});
    KdaScanArgs run = args;
    run.state_in = states_->address;
    run.s_b = map.s_b;
    stream_.launch(half ? segment_half_kernel : segment_narrow_kernel, p_.dtype, {},
                   {word(slab.heads * segments * slices(vp))}, run, {states_}, {workspace_, to, output, boundaries});
}

void Launcher::boundary(const Slab& slab, const Tensor& boundaries, std::int64_t spacing) {
    KdaBoundaryArgs a{workspace_->address,
                      boundaries.address(),
                      key_.tensor.address(),
                      decay_.tensor.address(),
                      key_.s[0],
                      key_.s[1],
                      key_.s[2],
                      decay_.s[0],
                      decay_.s[1],
                      decay_.s[2],
                      word(p_.T),
                      word(slab.tile0),
                      widths_of(p_, slab.tiles, true),
                      heads_packed(p_),
                      word(slab.head0),
                      word(p_.heads()),
                      word(spacing)};
    const Spec spec = spec_of(p_, {query_.s[3], key_.s[3], value_.s[3], decay_.s[3]}, slab.tiles, true);
    const Grid grid{word(slab.heads * slab.tiles),
                    p_.device.is_cpu() ? 1 : word(ceil_div(static_cast<std::uint64_t>(p_.K * p_.V), 128)), 1};
    stream_.launch(boundary_kernel, p_.dtype, spec, grid, a, {workspace_, key_.tensor, decay_.tensor}, {boundaries});
}

void Launcher::reverse(const Slab& slab, const Strided& grad_output, const StateView& from, const Tensor& to) {
    const Tensor& g = grad_output.tensor;
    KdaReverseArgs a{workspace_->address, g.defined() ? g.address() : 0,
                     from.address,        to.address(),
                     grad_output.s[0],    grad_output.s[1],
                     grad_output.s[2],    from.s[0],
                     from.s[1],           from.s[2],
                     from.s[3],           word(p_.T),
                     word(slab.tile0),    widths_of(p_, slab.tiles, true),
                     heads_packed(p_),    word(slab.head0)};
    stream_.launch(*kPaths[path_].reverse, p_.dtype, spec_of(p_, {0, 0, 0, 0, grad_output.s[3]}, slab.tiles, true),
                   {word(slab.heads) * slices(kPaths[path_].reverse_columns)}, a, {g, from.storage}, {workspace_, to});
}

void Launcher::epilogue(const Slab& slab, const KdaGradients& out) {
    KdaEpilogueArgs a{workspace_->address,
                      query_.tensor.address(),
                      key_.tensor.address(),
                      decay_.tensor.address(),
                      out.query.address(),
                      out.key.address(),
                      out.value.address(),
                      out.log_decay.address(),
                      out.beta.address(),
                      query_.s[0],
                      query_.s[1],
                      query_.s[2],
                      key_.s[0],
                      key_.s[1],
                      key_.s[2],
                      decay_.s[0],
                      decay_.s[1],
                      decay_.s[2],
                      word(p_.T),
                      word(slab.tile0),
                      widths_of(p_, slab.tiles, true),
                      heads_packed(p_),
                      word(slab.head0)};
    const Spec spec = spec_of(p_, {query_.s[3], key_.s[3], value_.s[3], decay_.s[3]}, slab.tiles, true);
    stream_.launch(*kPaths[path_].epilogue, p_.dtype, spec, {word(slab.heads / p_.group() * slab.tiles)}, a,
                   {query_.tensor, key_.tensor, decay_.tensor},
                   {workspace_, out.query, out.key, out.value, out.log_decay, out.beta});
}

}  // namespace vkml::kda

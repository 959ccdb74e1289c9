#include "vkml/ops/kda/kda_fast.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_fast_epilogue.spv.h"
#include "vkml/ops/kda/kda_fast_prepare.spv.h"
#include "vkml/ops/kda/kda_fast_reverse.spv.h"
#include "vkml/ops/kda/kda_fast_scan.spv.h"
#include "vkml/ops/kda/kda_fast_states.spv.h"
#include "vkml/runtime/cooperative.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/registry.h"

namespace vkml::kda {
namespace {

constexpr std::size_t kSlot = 66048, kSlotBackward = 189440;  // kUsed of kda_fast_common.slang
constexpr std::size_t kScratch = 4 * 65536;                   // kScratch of kda_fast_emulated.slang

constexpr FastKernels kCooperative{{"kda_fast_prepare", spv::kda_fast_prepare},
                                   {"kda_fast_scan", spv::kda_fast_scan_64},
                                   {"kda_fast_scan", spv::kda_fast_scan_32},
                                   {"kda_fast_prepare", spv::kda_fast_prepare_backward},
                                   {"kda_fast_states", spv::kda_fast_states},
                                   {"kda_fast_reverse", spv::kda_fast_reverse},
                                   {"kda_fast_epilogue", spv::kda_fast_epilogue},
                                   kSlot,
                                   kSlotBackward};
constexpr FastKernels kEmulated{{"kda_fast_prepare", spv::kda_fast_prepare_emulated},
                                {"kda_fast_scan", spv::kda_fast_scan_64_emulated},
                                {"kda_fast_scan", spv::kda_fast_scan_32_emulated},
                                {"kda_fast_prepare", spv::kda_fast_prepare_backward_emulated},
                                {"kda_fast_states", spv::kda_fast_states_emulated},
                                {"kda_fast_reverse", spv::kda_fast_reverse_emulated},
                                {"kda_fast_epilogue", spv::kda_fast_epilogue_emulated},
                                kSlot + kScratch,
                                kSlotBackward + kScratch};

std::atomic<bool> emulation{false};

const char* refuses_cooperative(const FastProblem& f, const Limits& limits) {
    const char* refusal = refuses_device(limits);
    return refusal ? refusal : refuses_fast_problem(f);
}
const char* refuses_emulated(const FastProblem& f, const Limits&) {
    const char* refusal = refuses_emulation();
    return refusal ? refusal : refuses_fast_problem(f);
}
constexpr Variant<FastProblem> kTable[] = {
    {"cooperative", refuses_cooperative}, {"emulated", refuses_emulated}, {"strict", never<FastProblem>}};

/// Lengths of the slabs, in tiles. The last scan runs alone, so they shrink: 56, 44, 28 of 128.
std::vector<std::int64_t> slabs_of(std::int64_t tiles, std::int64_t most) {
    std::vector<std::int64_t> out;
    while (tiles > most * 8 / 3) out.push_back(most), tiles -= most;
    if (tiles <= 8) return out.push_back(tiles), out;
    std::int64_t left = tiles;
    for (const std::int64_t share : {56, 44, 28}) {
        const std::int64_t n = std::clamp<std::int64_t>((tiles * share + 127) / 128, 1, std::min(most, left));
        out.push_back(n);
        left -= n;
        if (left == 0) return out;
    }
    for (; left > 0; left -= out.back()) out.push_back(std::min(most, left));
    return out;
}

std::uint32_t word(std::int64_t n) { return static_cast<std::uint32_t>(std::min<std::int64_t>(n, 0x7fffffff)); }

/// `alone`: with no preparation beside it.
void scan(const FastProblem& f, const FastKernels& kernels, const FastSlab& part, const Storage& workspace,
          const KdaOutput& out, bool alone) {
    // Narrow slices fill the device with few heads; wide ones leave units to the preparation. The same bits either way.
    const bool wide = part.heads * 2 >= (alone ? 128 : 64);
    const std::int64_t spacing = f.spacing >= f.p.T ? f.p.tiles() : f.spacing / kTile;
    const KdaFastScanArgs a{workspace->address,
                            f.value.tensor.address(),
                            out.final_state.address(),
                            out.output.address(),
                            out.boundaries.defined() ? out.boundaries.address() : 0,
                            f.value.s[0],
                            f.value.s[1],
                            f.value.s[2],
                            word(f.p.T),
                            word(part.tile0),
                            static_cast<std::uint32_t>(part.tiles - 1) << 16,
                            heads_packed(f.p),
                            word(part.head0),
                            word(f.p.heads()),
                            word(spacing)};
    stream(f.p.device)
        .launch(wide ? kernels.scan_64 : kernels.scan_32, f.p.dtype, {}, {word(part.heads * (wide ? 2 : 4))}, a,
                {workspace, f.value.tensor}, {out.final_state, out.output, out.boundaries});
}

}  // namespace

void force_emulation(bool on) { emulation.store(on, std::memory_order_relaxed); }

const FastKernels& fast_kernels(std::size_t row) { return row == 0 ? kCooperative : kEmulated; }

bool rows_aligned(const Strided& x) {
    const auto item = static_cast<std::uint32_t>(itemsize(x.tensor.dtype()));
    return x.s[3] == 1 && x.tensor.address() % 16 == 0 && (x.s[0] | x.s[1] | x.s[2]) * item % 16 == 0;
}

const char* refuses_device(const Limits& limits) {
    if (emulation.load(std::memory_order_relaxed)) return "the emulation is asked for by name";
    if (!has_cooperative_matrices(limits, DType::bf16))
        return "the device has no 16x16x16 cooperative matrices of bfloat16";
    if (limits.subgroup_size != 32) return "the device's subgroups are not of 32";
    if (limits.max_workgroup_invocations < 256 || limits.shared_memory < 49152)
        return "256 invocations and 48 KiB of shared memory are needed";
    return nullptr;
}

const char* refuses_emulation() {
    return emulation.load(std::memory_order_relaxed) ? nullptr : "the emulation is for tests";
}

const char* refuses_fast_problem(const FastProblem& f) {
    if (f.p.dtype != DType::bf16) return "the tensors are not bfloat16";
    if (f.p.K != 128 || f.p.V != 128) return "K and V are not 128";
    if (f.boundaries && f.spacing % kTile != 0 && f.spacing < f.p.T) return "boundaries lie inside tiles of 64";
    if (!rows_aligned(f.query) || !rows_aligned(f.key) || !rows_aligned(f.value) || !rows_aligned(f.decay))
        return "a row does not begin at 16 bytes";
    return nullptr;
}

FastProblem fast_problem(const Problem& p, const Inputs& in, std::int64_t spacing, bool boundaries) {
    return {p,       strided(in.query), strided(in.key), strided(in.value), strided(in.log_decay), strided(in.beta),
            spacing, boundaries};
}

void fast_prepare(const FastProblem& f, const Kernel& kernel, const FastSlab& part, const Storage& workspace) {
    const std::int64_t first = part.tile0 * kTile;
    const auto from = [&](const Strided& x) {
        return x.tensor.address() + static_cast<Address>(first) * x.s[2] * itemsize(x.tensor.dtype());
    };
    const KdaPrepareArgs a{from(f.query),       from(f.key),
                           from(f.value),       from(f.decay),
                           from(f.beta),        workspace->address,
                           f.query.s[0],        f.query.s[1],
                           f.query.s[2],        f.key.s[0],
                           f.key.s[1],          f.key.s[2],
                           f.value.s[0],        f.value.s[1],
                           f.value.s[2],        f.decay.s[0],
                           f.decay.s[1],        f.decay.s[2],
                           f.beta.s[0],         f.beta.s[1],
                           f.beta.s[2],         static_cast<float>(f.p.scale),
                           word(f.p.T - first), static_cast<std::uint32_t>(part.tiles - 1) << 16,
                           heads_packed(f.p),   word(part.head0)};
    stream(f.p.device)
        .launch(kernel, f.p.dtype, {}, {word(part.heads * part.tiles)}, a,
                {f.query.tensor, f.key.tensor, f.decay.tensor, f.beta.tensor}, {workspace});
}

void start_state(const Tensor& to, const Tensor& from) {
    const NoGrad off;
    if (from.defined())
        copy_into(to, from.view(expand(from.layout(), to.shape())));
    else
        fill_into(to, 0.0);
}

bool run_forward_fast(std::string_view op, const Problem& p, const Inputs& in, const KdaOutput& out,
                      std::int64_t spacing) {
    const FastProblem f = fast_problem(p, in, spacing, out.boundaries.defined());
    Stream& on = stream(p.device);
    const std::size_t row = choose("kda.fast", op, kTable, f, on.limits());
    if (row + 1 == std::size(kTable)) return false;
    const FastKernels& kernels = fast_kernels(row);
    start_state(out.final_state, in.initial_state);  // the scan runs in place from here
    const std::int64_t heads = std::min<std::int64_t>(p.heads(), 512);
    const auto most =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(most_workspace() / 2 / kernels.slot) / heads, 1, p.tiles());
    const std::vector<std::int64_t> lengths = slabs_of(p.tiles(), most);
    const auto bytes =
        static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()) * heads) * kernels.slot;
    // Two workspaces in turn, so that one slab is prepared while the one before is scanned.
    const Storage workspaces[] = {on.allocate(bytes),
                                  lengths.size() > 1 || heads < p.heads() ? on.allocate(bytes) : Storage()};
    std::vector<FastSlab> parts;
    for (std::int64_t head = 0; head < p.heads(); head += heads)
        for (std::int64_t tile = 0; const std::int64_t n : lengths) {
            parts.push_back({head, std::min(heads, p.heads() - head), tile, n});
            tile += n;
        }
    // The scan is recorded first: its few workgroups start at once, and the next slab's preparation fills the other
    // units.
    fast_prepare(f, kernels.prepare, parts[0], workspaces[0]);
    for (std::size_t i = 0; i < parts.size(); i++) {
        scan(f, kernels, parts[i], workspaces[i % 2], out, i + 1 == parts.size());
        if (i + 1 < parts.size()) fast_prepare(f, kernels.prepare, parts[i + 1], workspaces[(i + 1) % 2]);
    }
    return true;
}

}  // namespace vkml::kda

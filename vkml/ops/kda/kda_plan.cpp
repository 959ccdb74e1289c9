#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/kda/kda_args.h"
#include "vkml/ops/kda/kda_internal.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/decisions.h"

namespace vkml::kda {
namespace {

// One grid axis holds a workgroup for each slot, and for each head and slice of 8 columns.
constexpr std::int64_t kMostSlots = 32768, kMostHeads = 1024;
// On the CPU a slab should stay in the caches.
constexpr std::size_t kCpuWorkspace = std::size_t{8} << 20;

std::atomic<std::size_t> forced_workspace{0};

std::size_t forced_or(std::size_t usual) {
    const std::size_t forced = forced_workspace.load(std::memory_order_relaxed);
    return forced ? forced : usual;
}
std::size_t budget_of(const Problem& p) { return p.device.is_cpu() ? forced_or(kCpuWorkspace) : most_workspace(); }

std::atomic<std::int64_t> forced_segments{0};

// A scan of few workgroups leaves units of a large device idle, and a shorter sequence is over before segments pay
// (kda.md 6.1). Segments are three times the work, on kernels of half the rate: they are for few heads only.
constexpr std::int64_t kFewWorkgroups = 64, kEnoughWorkgroups = 512, kShort = 4096, kColumns = 16, kFewestTiles = 8;

std::int64_t scan_workgroups(const Problem& p) { return p.heads() * ((p.V + kColumns - 1) / kColumns); }

const char* refuses_segments(const Problem& p, const Limits&) {
    if (p.tiles() < 2) return "there is one tile";
    if (forced_segments.load(std::memory_order_relaxed)) return nullptr;
    if (scan_workgroups(p) >= kFewWorkgroups) return "there are heads enough";
    if (p.T <= kShort) return "the sequence is short";
    return nullptr;
}
constexpr Variant<Problem> kSegments[] = {{"segments", refuses_segments}, {"one", never<Problem>}};

bool segments_fit(const Problem& p) { return !p.device.is_cpu() && refuses_segments(p, {}) == nullptr; }

std::uint32_t pad_of(const Problem& p) { return p.device.is_cpu() ? 16 : 8; }

}  // namespace

std::uint32_t padded(const Problem& p, std::int64_t width) {
    const std::uint32_t pad = pad_of(p);
    return (static_cast<std::uint32_t>(width) + pad - 1) / pad * pad;
}

std::size_t most_workspace() { return forced_or(kMostWorkspace); }

void force_workspace(std::size_t bytes) { forced_workspace.store(bytes, std::memory_order_relaxed); }

void force_segments(std::int64_t tiles) { forced_segments.store(tiles, std::memory_order_relaxed); }

std::int64_t segment_tiles(std::string_view op, const Problem& p) {
    if (p.device.is_cpu() || choose("kda.segments", op, kSegments, p, {}) != 0) return 0;
    if (const std::int64_t forced = forced_segments.load(std::memory_order_relaxed)) return forced;
    // Maps and states of all segments fit the quarter of the workspace that plan_slabs leaves.
    const std::int64_t kp = padded(p, p.K), vp = padded(p, p.V);
    const auto bytes = static_cast<std::size_t>(p.heads() * (kp * (kp + vp) + p.K * p.V)) * itemsize(p.wide);
    const auto most = static_cast<std::int64_t>(most_workspace() / 4 / bytes);
    const std::int64_t enough = (kEnoughWorkgroups + scan_workgroups(p) - 1) / scan_workgroups(p);
    const std::int64_t wanted = std::max<std::int64_t>(1, std::min(enough, most));
    return std::max(kFewestTiles, (p.tiles() + wanted - 1) / wanted);
}

Slabs plan_slabs(const Problem& p, bool keep, std::int64_t align) {
    const KdaSlot slot = kdaSlot(padded(p, p.K), padded(p, p.V), keep, p.group() > 1);
    Slabs s;
    s.slot_bytes = std::size_t{slot.size} * itemsize(p.wide);
    // A slab whose segments run side by side leaves room for their maps and states.
    const std::size_t budget = budget_of(p) - (segments_fit(p) ? budget_of(p) / 4 : 0);
    const std::int64_t slots =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(budget / s.slot_bytes), 1, kMostSlots);
    const std::int64_t group = p.group(), groups = p.heads() / group;
    // Heads fill the device while tiles only lengthen a slab, so heads are given up last, and only down to a full
    // device.
    const std::int64_t enough = p.device.is_cpu() ? cpu::thread_count() : 64;
    const std::int64_t wanted_tiles = std::min(p.tiles(), std::max<std::int64_t>(align, p.device.is_cpu() ? 2 : 16));
    std::int64_t taken = std::min(groups, std::max<std::int64_t>(1, kMostHeads / group));
    while (taken > 1 && taken * group > enough && slots / (taken * group) < wanted_tiles) taken = (taken + 1) / 2;
    s.heads = taken * group;
    s.tiles = std::clamp<std::int64_t>(slots / s.heads, 1, p.tiles());
    if (s.tiles < p.tiles() && s.tiles > align) s.tiles = s.tiles / align * align;
    return s;
}

Strided strided(const Tensor& t) {
    Strided out;
    if (!t.defined()) return out;
    const std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    out.tensor = t;
    for (int i = 0; i < t.ndim(); i++)
        if (t.size(i) > 1 && t.strides()[i] > most) {
            const NoGrad off;
            out.tensor = contiguous(t);
        }
    for (int i = 0; i < t.ndim(); i++)
        if (t.size(i) > 1) out.s[i] = static_cast<std::uint32_t>(out.tensor.strides()[i]);
    return out;
}

std::uint32_t heads_packed(const Problem& p) {
    return (static_cast<std::uint32_t>(p.HV - 1) & 0xffffu) | static_cast<std::uint32_t>(p.group() - 1) << 16;
}

Spec spec_of(const Problem& p, std::initializer_list<std::uint32_t> steps, std::int64_t tiles, bool keep) {
    const auto word = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
    std::uint32_t step[5] = {};
    std::copy(steps.begin(), steps.end(), step);
    // A pipeline per layout, not per shape: Vulkan kernels get the extents and a float scale as arguments.
    if (!p.device.is_cpu()) return {step[0], step[1], step[2], step[3], step[4]};
    const auto bits = std::bit_cast<std::uint64_t>(p.scale);
    return {step[0],
            step[1],
            step[2],
            step[3],
            step[4],
            word(p.K),
            word(p.V),
            word(p.H),
            word(p.HV),
            word(tiles),
            keep,
            pad_of(p),
            word(static_cast<std::int64_t>(bits)),
            word(static_cast<std::int64_t>(bits >> 32))};
}

}  // namespace vkml::kda

#include <algorithm>
#include <atomic>

#include "vkml/core/error.h"
#include "vkml/ops/conv2d/conv2d_choice.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/runtime/configuration.h"
#include "vkml/runtime/cooperative.h"
#include "vkml/runtime/decisions.h"

namespace vkml::conv {
namespace {

struct Named {
    std::string_view name;
    Path path;
    TileSize tile = TileSize::any;
};
constexpr Named kNames[] = {{"pointwise", Path::pointwise},
                            {"direct", Path::direct},
                            {"coopmat", Path::coopmat},
                            {"implicit", Path::tile},
                            {"im2col", Path::columns},
                            {"implicit_small", Path::tile, TileSize::small},
                            {"implicit_wide", Path::tile, TileSize::wide},
                            {"implicit_square", Path::tile, TileSize::square}};

int index_of(std::string_view name) {
    for (int i = 0; i < static_cast<int>(std::size(kNames)); i++)
        if (kNames[i].name == name) return i;
    return -1;
}

std::atomic<int> forced_index{-1};

/// The environment's wish, read once.
int environment_index() {
    static const int read = [] {
        const std::string_view name = setting("VKML_CONV2D_PATH");
        const int index = index_of(name);
        check(name.empty() || index >= 0, "VKML_CONV2D_PATH: expected the name of a path, got ", name);
        return index;
    }();
    return read;
}

const Named* wanted() {
    const int forced = forced_index.load(std::memory_order_relaxed), index = forced >= 0 ? forced : environment_index();
    return index >= 0 ? &kNames[index] : nullptr;
}

/// What the choice may look at. Channels are summed over, outputs are computed; of one group, for this part.
struct Problem {
    Part part;
    const Sizes* sizes;
    std::int64_t channels, outputs, pixels;
    DType dtype;
    bool cpu, exact, offsets_fit;
};

const char* unwanted(Path self) {
    return wanted() && wanted()->path != self ? "another path is asked for by name" : nullptr;
}
bool asked_for(Path self) { return wanted() && wanted()->path == self; }

/// The list of a device's cooperative matrices has the one that the kernels are written for.
bool has_coopmat(DType dtype, const Limits& limits) {
    return (dtype == DType::f16 || dtype == DType::bf16) && has_cooperative_matrices(limits, dtype) &&
           limits.subgroups_of_32;
}

const char* refuses_pointwise(const Problem& p, const Limits& limits) {
    if (!p.sizes->pointwise()) return "the kernel is not 1x1 with stride 1 and no padding";
    if (p.cpu || asked_for(Path::pointwise)) return nullptr;
    if (const char* reason = unwanted(Path::pointwise)) return reason;
    if (p.exact) return nullptr;
    if (p.part == Part::weight_gradient)
        return "the sums run over the batch, which a product for each sample would split";
    if (p.dtype == DType::f64) return nullptr;
    const bool halves = p.dtype != DType::f32;
    if (halves && !has_coopmat(p.dtype, limits)) return nullptr;
    const bool large = p.outputs >= (halves ? 128 : 64) && p.pixels >= 128 && p.pixels % (halves ? 8 : 4) == 0 &&
                       p.channels % (halves ? 32 : 16) == 0;
    return large ? nullptr : "the product is not one for the large tiles of matmul";
}

/// What every kernel of this folder needs.
const char* refuses_kernel(const Problem& p, Path self) {
    if (p.cpu) return "the device is the CPU";
    if (const char* reason = unwanted(self)) return reason;
    if (p.exact) return "only the product of columns keeps the order of exact";
    if (!p.offsets_fit) return "a sample has more elements than 31-bit offsets reach";
    const Window& w = p.sizes->window;
    if (std::max({w.stride.h, w.stride.w, w.dilation.h, w.dilation.w}) >= 1 << 15)
        return "a stride or dilation is 2^15 or more";
    if (p.sizes->batch == 0 || p.sizes->channels == 0) return "there is nothing to add";
    return nullptr;
}

const char* refuses_direct(const Problem& p, const Limits&) {
    if (const char* reason = refuses_kernel(p, Path::direct)) return reason;
    const Window& w = p.sizes->window;
    if (std::max(w.kernel.h, w.kernel.w) >= 1 << 15) return "a side of the kernel is 2^15 or more";
    if (asked_for(Path::direct)) return nullptr;
    if (p.part == Part::weight_gradient)
        return p.channels * p.outputs > 64 ? "a group has more than 64 pairs of channels: tiles are fuller" : nullptr;
    return p.outputs > 8 ? "a group has more than 8 outputs: tiles are fuller" : nullptr;
}

const char* refuses_coopmat(const Problem& p, const Limits& limits) {
    if (const char* reason = refuses_kernel(p, Path::coopmat)) return reason;
    if (p.dtype != DType::f16 && p.dtype != DType::bf16) return "cooperative matrices are for f16 and bf16";
    if (!has_coopmat(p.dtype, limits))
        return "the device lists no 16x16x16 cooperative matrices of this dtype with f32 sums and subgroups of 32";
    if (limits.shared_memory < 20480) return "too little shared memory for a 128x128 tile";
    if (std::max(p.sizes->window.kernel.h, p.sizes->window.kernel.w) > 31) return "a side of the kernel is over 31";
    if (asked_for(Path::coopmat)) return nullptr;
    if (p.outputs < 16 || p.channels < 8) return "a group has too few channels to fill a fragment";
    return nullptr;
}

const char* refuses_tile(const Problem& p, const Limits&) {
    if (const char* reason = refuses_kernel(p, Path::tile)) return reason;
    if (std::max(p.sizes->window.kernel.h, p.sizes->window.kernel.w) > 31) return "a side of the kernel is over 31";
    return nullptr;
}

constexpr Variant<Problem> kTable[] = {{"pointwise", refuses_pointwise},
                                       {"direct", refuses_direct},
                                       {"coopmat", refuses_coopmat},
                                       {"implicit", refuses_tile},
                                       {"im2col", never<Problem>}};
constexpr Path kPaths[] = {Path::pointwise, Path::direct, Path::coopmat, Path::tile, Path::columns};

}  // namespace

Path choose_path(Part part, const Sizes& s, DType dtype, bool cpu, const Limits& limits, std::uint64_t dispatch) {
    constexpr std::string_view kOps[] = {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient"};
    const bool flipped = part == Part::input_gradient;
    const std::int64_t most = std::max(
        {s.channels * s.image.h * s.image.w, s.outputs * s.out.h * s.out.w, s.outputs * s.channels_each() * s.taps()});
    const Problem problem{.part = part,
                          .sizes = &s,
                          .channels = flipped ? s.outputs_each() : s.channels_each(),
                          .outputs = flipped ? s.channels_each() : s.outputs_each(),
                          .pixels = flipped ? s.image.h * s.image.w : s.out.h * s.out.w,
                          .dtype = dtype,
                          .cpu = cpu,
                          .exact = float32_matmul_precision() == Precision::exact,
                          .offsets_fit = most < (std::int64_t{1} << 29)};
    // The log names the path that came closest: one that was asked for and refused, else the one just before.
    std::string_view instead_of;
    const char* because = "first choice fits";
    bool asked = false;
    for (std::size_t i = 0; i < std::size(kTable); i++) {
        const char* refusal = kTable[i].refuses(problem, limits);
        if (!refusal) {
            if (asked_for(kPaths[i])) instead_of = {}, because = "asked for by name";
            if (recording_decisions())
                publish({.site = "conv2d.path",
                         .op = std::string(kOps[static_cast<int>(part)]),
                         .chose = std::string(kTable[i].name),
                         .instead_of = std::string(instead_of),
                         .because = because,
                         .seq = 0,
                         .dispatch = dispatch});
            return kPaths[i];
        }
        if (asked) continue;
        asked = asked_for(kPaths[i]);
        instead_of = kTable[i].name, because = refusal;
    }
    return Path::columns;
}

TileSize wanted_tile() { return wanted() ? wanted()->tile : TileSize::any; }

void force_path(std::string_view name) {
    const int index = index_of(name);
    check(name.empty() || index >= 0, "force_conv2d: expected the name of a path, got ", name);
    forced_index.store(index, std::memory_order_relaxed);
}

std::vector<std::string_view> path_names() {
    std::vector<std::string_view> names;
    for (const Named& named : kNames) names.push_back(named.name);
    return names;
}

}  // namespace vkml::conv

#include "vkml/ops/matmul/gemm_choice.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <charconv>
#include <string>

#include "vkml/core/error.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/runtime/configuration.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"

namespace vkml {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr std::uint32_t kMostParts = 128;
constexpr std::uint32_t kAssumedUnits = 16;  // of a device that does not say how many it has

enum class Mode : std::uint8_t { automatic, off, forced };

Mode read_mode(std::string_view name) {
    const std::string_view value = setting(name);
    if (value.empty() || value == "AUTO") return Mode::automatic;
    if (value == "OFF") return Mode::off;
    if (value == "FORCED") return Mode::forced;
    fail<ShapeError>(name, ": expected AUTO, OFF or FORCED, got ", value);
}

/// The environment's wishes, read once.
struct Wishes {
    Mode gemv = read_mode("VKML_GEMV"), split = read_mode("VKML_GEMM_SPLITK");
    std::string_view kernel = setting("VKML_GEMM_KERNEL");
    bool db = setting_on("VKML_GEMM_DB");
    std::uint32_t splits = 4;

    Wishes() {
        check(kernel.empty() || kernel == "naive" || kernel == "tiled" || kernel == "reg",
              "VKML_GEMM_KERNEL: expected naive, tiled or reg, got ", kernel);
        const std::string_view text = setting("VKML_GEMM_SPLITK_SPLITS");
        if (text.empty()) return;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), splits);
        check(read.ec == std::errc{} && read.ptr == text.data() + text.size() && splits >= 1 && splits <= kMostParts,
              "VKML_GEMM_SPLITK_SPLITS: expected 1 to ", kMostParts, ", got ", text);
    }
};

const Wishes& wishes() {
    static const Wishes read;
    return read;
}

struct Named {
    std::string_view name;
    Pipeline pipeline;
};
constexpr Named kNames[] = {
    {"gemv", Pipeline::gemv},        {"gemm_naive", Pipeline::naive},   {"gemm_tiled", Pipeline::tiled},
    {"gemm_db", Pipeline::db},       {"gemm_reg", Pipeline::reg},       {"gemm_split_k_reduce", Pipeline::split_k},
    {"gemm_large", Pipeline::large}, {"gemm_medium", Pipeline::medium}, {"gemm_coopmat", Pipeline::coopmat}};

std::atomic<int> forced_index{-1};

/// A pipeline asked for by name, through force_gemm or the environment; -1 when the choice is free.
int wanted() {
    const int index = forced_index.load(std::memory_order_relaxed);
    if (index >= 0) return static_cast<int>(kNames[index].pipeline);
    const Wishes& w = wishes();
    if (w.gemv == Mode::forced) return static_cast<int>(Pipeline::gemv);
    if (w.db) return static_cast<int>(Pipeline::db);
    if (w.kernel == "naive") return static_cast<int>(Pipeline::naive);
    if (w.kernel == "tiled") return static_cast<int>(Pipeline::tiled);
    if (w.split == Mode::forced) return static_cast<int>(Pipeline::split_k);
    return w.kernel == "reg" ? static_cast<int>(Pipeline::reg) : -1;
}

std::int64_t tiles(const GemmProblem& p) { return ((p.m + 31) / 32) * ((p.n + 31) / 32); }
std::int64_t blocks(const GemmProblem& p) { return (p.k + 31) / 32; }
bool is_wide(DType dtype) { return dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16; }

const char* lacks_blocked(const Limits& limits) {
    if (limits.max_workgroup_invocations < 256 || limits.max_workgroup_size[0] < 256)
        return "the device allows fewer than 256 invocations";
    if (limits.shared_memory < 16384) return "the device has less than 16 KiB of shared memory";
    return nullptr;
}

const char* refuses_gemv(const GemmProblem& p, const Limits&) {
    if (static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) >= 0x1p31)
        return "more outputs than one grid takes";
    if (wanted() == static_cast<int>(Pipeline::gemv)) return nullptr;
    if (wanted() >= 0) return "another kernel is asked for by name";
    if (wishes().gemv == Mode::off) return "VKML_GEMV is OFF";
    if (p.m != 1 && p.n != 1) return "neither M nor N is 1";
    if (!p.k_packed) return "an operand is not packed along K, so lanes over K would not read neighbours";
    return p.k < 128 ? "K is shorter than a workgroup" : nullptr;
}

template <Pipeline pipeline>
const char* refuses_named(const GemmProblem& p, const Limits& limits) {
    if (wanted() != static_cast<int>(pipeline)) return "not asked for by name";
    if (pipeline == Pipeline::db && is_wide(p.dtype)) return "elements of this dtype are not packed by this kernel";
    return lacks_blocked(limits);
}

const char* refuses_forced_naive(const GemmProblem&, const Limits&) {
    return wanted() == static_cast<int>(Pipeline::naive) ? nullptr : "not asked for by name";
}

/// The vectorised f32 tiles; `fill` is the share of the device's units that the tiles must occupy.
const char* refuses_vectorised(const GemmProblem& p, const Limits& limits, Pipeline self, std::int64_t tile_m,
                               std::int64_t tile_n, double fill) {
    if (wanted() >= 0 && wanted() != static_cast<int>(self)) return "another kernel is asked for by name";
    if (p.dtype != DType::f32) return "the large tiles are for f32";
    if (p.precision == Precision::exact) return "the large tiles do not keep the order of exact";
    if (!p.aligned || p.n % 4 || p.k % 16 || p.k == 0)
        return "an operand is not aligned to 16 bytes or has distant lines, N not a multiple of 4, or K not of 16";
    if (p.m < tile_m || p.n < tile_n) return "the output is smaller than a large tile";
    const std::uint64_t shared = static_cast<std::uint64_t>(16 * (tile_m + 4 + tile_n) * 4);
    if (limits.shared_memory < shared) return "too little shared memory for a large tile";
    if (limits.max_workgroup_invocations < (self == Pipeline::large ? 256u : 128u))
        return "too few invocations for a large tile";
    if (wanted() == static_cast<int>(self)) return nullptr;
    const double units = limits.compute_units ? limits.compute_units : kAssumedUnits;
    const double count =
        static_cast<double>(ceil_div(static_cast<std::uint64_t>(p.m), static_cast<std::uint64_t>(tile_m)) *
                            ceil_div(static_cast<std::uint64_t>(p.n), static_cast<std::uint64_t>(tile_n)));
    return count < fill * units ? "too few large tiles to fill the device" : nullptr;
}

const char* refuses_large(const GemmProblem& p, const Limits& limits) {
    return refuses_vectorised(p, limits, Pipeline::large, 128, 256, 0.75);
}

const char* refuses_medium(const GemmProblem& p, const Limits& limits) {
    return refuses_vectorised(p, limits, Pipeline::medium, 64, 128, 0.125);
}

const char* refuses_coopmat(const GemmProblem& p, const Limits& limits) {
    if (wanted() >= 0 && wanted() != static_cast<int>(Pipeline::coopmat)) return "another kernel is asked for by name";
    if (p.dtype != DType::f16 && p.dtype != DType::bf16) return "cooperative matrices are for f16 and bf16";
    if (p.precision == Precision::exact) return "cooperative matrices do not keep the order of exact";
    const auto fits = [&](const Limits::CooperativeMatrix& c) {
        return c.m == 16 && c.n == 16 && c.k == 16 && c.operand == p.dtype && c.accumulator == DType::f32;
    };
    if (std::none_of(limits.cooperative_matrices.begin(), limits.cooperative_matrices.end(), fits))
        return "the device lists no 16x16x16 cooperative matrices of this dtype with f32 sums";
    if (limits.min_subgroup_size != 32 || limits.max_subgroup_size != 32)
        return "the kernel is written for subgroups of 32";
    if (limits.shared_memory < 20480) return "too little shared memory for a 128x128 tile";
    if (!p.aligned || p.n % 8 || p.k % 32 || p.k == 0)
        return "an operand is not aligned to 16 bytes, N not a multiple of 8, or K not of 32";
    if (p.m < 128 || p.n < 128) return "the output is smaller than a 128x128 tile";
    return nullptr;
}

/// A vector of outputs that gemv does not read well, and too few terms to share: tiles would be 31 parts of 32 empty.
const char* refuses_thin(const GemmProblem& p, const Limits&) {
    if (wanted() >= 0) return "another kernel is asked for by name";
    if (p.m != 1 && p.n != 1) return "neither M nor N is 1";
    return p.k > 256 ? "K is long enough for tiles" : nullptr;
}

const char* refuses_reg(const GemmProblem& p, const Limits& limits) {
    if (is_wide(p.dtype)) return "the 32x32 tile is for f32, f16 and bf16";
    return lacks_blocked(limits);
}

const char* refuses_tiled(const GemmProblem&, const Limits& limits) { return lacks_blocked(limits); }

/// Parts such that the workspace stays in bounds; in `exact` all but the last hold the same power-of-two count of
/// blocks.
Choice split(const GemmProblem& p, std::int64_t parts) {
    const std::int64_t room =
        static_cast<std::int64_t>(kWorkspace / sizeof(float)) / std::max<std::int64_t>(1, p.m * p.n);
    parts = std::min({parts, blocks(p), room, std::int64_t{kMostParts}});
    if (parts < 2) return {Pipeline::split_k, 1, 0};
    auto per_part = static_cast<std::uint64_t>((blocks(p) + parts - 1) / parts);
    if (p.precision == Precision::exact) per_part = std::bit_ceil(per_part);
    return {Pipeline::split_k, static_cast<std::uint32_t>(ceil_div(static_cast<std::uint64_t>(blocks(p)), per_part)),
            static_cast<std::uint32_t>(per_part * 32)};
}

Choice split_choice(const GemmProblem& p, const Limits& limits) {
    if (wanted() == static_cast<int>(Pipeline::split_k)) return split(p, wishes().splits);
    const std::int64_t units = 2 * std::int64_t{limits.compute_units ? limits.compute_units : kAssumedUnits};
    // Eight slices of 32 or more for each part, or adding the parts costs as much as it saves.
    return split(p, std::min((units + tiles(p) - 1) / tiles(p), blocks(p) / 8));
}

const char* refuses_split(const GemmProblem& p, const Limits& limits) {
    if (const char* reason = refuses_reg(p, limits)) return reason;
    const bool forced = wanted() == static_cast<int>(Pipeline::split_k);
    if (!forced) {
        if (wanted() >= 0 && wanted() != static_cast<int>(Pipeline::reg)) return "another kernel is asked for by name";
        if (forced_index.load(std::memory_order_relaxed) >= 0) return "another kernel is asked for by name";
        if (wishes().split == Mode::off) return "VKML_GEMM_SPLITK is OFF";
        const std::int64_t units = 2 * std::int64_t{limits.compute_units ? limits.compute_units : kAssumedUnits};
        if (tiles(p) >= units) return "the output tiles fill the device";
        if (blocks(p) < tiles(p)) return "K is short against the output";
    }
    return split_choice(p, limits).parts < 2 ? "K or the workspace has no room for two parts" : nullptr;
}

struct Row {
    Named named;
    const char* (*refuses)(const GemmProblem&, const Limits&);
};
constexpr Row kTable[] = {
    {{"gemv", Pipeline::gemv}, refuses_gemv},
    {{"gemm_naive", Pipeline::naive}, refuses_forced_naive},
    {{"gemm_tiled", Pipeline::tiled}, refuses_named<Pipeline::tiled>},
    {{"gemm_db", Pipeline::db}, refuses_named<Pipeline::db>},
    {{"gemm_naive", Pipeline::naive}, refuses_thin},
    {{"gemm_coopmat", Pipeline::coopmat}, refuses_coopmat},
    {{"gemm_large", Pipeline::large}, refuses_large},
    {{"gemm_split_k_reduce", Pipeline::split_k}, refuses_split},
    {{"gemm_medium", Pipeline::medium}, refuses_medium},
    {{"gemm_reg", Pipeline::reg}, refuses_reg},
    {{"gemm_tiled", Pipeline::tiled}, refuses_tiled},
    {{"gemm_naive", Pipeline::naive}, never<GemmProblem>},
};

}  // namespace

void publish_gemm(std::string_view op, std::string_view chose, std::string_view because, std::uint64_t dispatch) {
    if (!recording_decisions()) return;
    publish({.site = "matmul.kernel",
             .op = std::string(op),
             .chose = std::string(chose),
             .instead_of = "",
             .because = std::string(because),
             .seq = 0,
             .dispatch = dispatch});
}

void publish_precision(std::string_view op, const GemmProblem& problem, std::uint64_t dispatch) {
    const bool lower = problem.precision == Precision::high || problem.precision == Precision::medium;
    if (!lower || problem.dtype != DType::f32 || !recording_decisions()) return;
    publish({.site = "matmul.precision",
             .op = std::string(op),
             .chose = "highest",
             .instead_of = problem.precision == Precision::high ? "high" : "medium",
             .because = "no kernel splits or rounds f32 operands, so products keep full f32",
             .seq = 0,
             .dispatch = dispatch});
}

Choice choose_gemm(std::string_view op, const GemmProblem& problem, const Limits& limits, std::uint64_t dispatch) {
    // The log names the row that came closest: one that was asked for and refused, else the one just before.
    std::string_view instead_of;
    const char* because = "first choice fits";
    bool asked = false;
    for (const Row& row : kTable) {
        const char* refusal = row.refuses(problem, limits);
        if (!refusal) {
            if (wanted() == static_cast<int>(row.named.pipeline)) instead_of = {}, because = "asked for by name";
            if (recording_decisions())
                publish({.site = "matmul.kernel",
                         .op = std::string(op),
                         .chose = std::string(row.named.name),
                         .instead_of = std::string(instead_of),
                         .because = because,
                         .seq = 0,
                         .dispatch = dispatch});
            if (row.named.pipeline == Pipeline::split_k) return split_choice(problem, limits);
            return {row.named.pipeline, 1, 0};
        }
        if (asked || std::string_view(refusal) == "not asked for by name") continue;
        asked = wanted() == static_cast<int>(row.named.pipeline);
        instead_of = row.named.name;
        because = refusal;
    }
    return {Pipeline::naive, 1, 0};
}

void force_gemm(std::string_view name) {
    int index = -1;
    for (int i = 0; i < static_cast<int>(std::size(kNames)); i++)
        if (kNames[i].name == name) index = i;
    check(name.empty() || index >= 0, "force_gemm: expected the name of a pipeline, got ", name);
    forced_index.store(index, std::memory_order_relaxed);
}

std::vector<std::string_view> gemm_names() {
    std::vector<std::string_view> names;
    for (const Named& named : kNames) names.push_back(named.name);
    return names;
}

}  // namespace vkml

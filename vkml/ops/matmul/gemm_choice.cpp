#include "vkml/ops/matmul/gemm_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "vkml/core/error.h"
#include "vkml/ops/matmul/gemm_product.h"
#include "vkml/runtime/cooperative.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"

namespace vkml {
namespace {

constexpr std::uint32_t kMostParts = 128;
constexpr std::uint32_t kAssumedUnits = 16;  // of a device that does not say how many it has
constexpr std::uint32_t kLargestGrid = 65535;

double units(const Limits& limits) { return limits.compute_units ? limits.compute_units : kAssumedUnits; }
std::int64_t tiles32(const GemmProblem& p) { return ((p.m + 31) / 32) * ((p.n + 31) / 32); }
std::int64_t blocks(const GemmProblem& p) { return (p.k + 31) / 32; }
bool is_wide(DType dtype) { return dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16; }
bool is_asked(Pipeline pipeline) { return forced_pipeline() == static_cast<int>(pipeline); }

double down(const GemmProblem& p, const Tile& t) { return static_cast<double>((p.m + t.m - 1) / t.m); }
double across(const GemmProblem& p, const Tile& t) { return static_cast<double>((p.n + t.n - 1) / t.n); }
double tiles(const GemmProblem& p, const Tile& t) { return down(p, t) * across(p, t) * static_cast<double>(p.batch); }
/// The share of the tiles' outputs that exist.
double filled(const GemmProblem& p, const Tile& t) {
    return static_cast<double>(p.m) * static_cast<double>(p.n) / (down(p, t) * t.m * across(p, t) * t.n);
}
double chains(const GemmProblem& p) { return static_cast<double>((p.k + gemm_chain(p) - 1) / gemm_chain(p)); }

const char* lacks_blocked(const Limits& limits) {
    if (limits.max_workgroup_invocations < 256 || limits.max_workgroup_size[0] < 256)
        return "the device allows fewer than 256 invocations";
    if (limits.shared_memory < 16384) return "the device has less than 16 KiB of shared memory";
    return nullptr;
}

// What a pipeline cannot do, asked for or not -------------------------------------------------------------------------

const char* cannot_tile(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    const Tile t = tile_of(pipeline);
    if (p.k == 0) return "K is 0";
    if (p.precision == Precision::exact) return "the large tiles do not keep the order of exact";
    if (limits.max_workgroup_invocations < t.threads || limits.max_workgroup_size[0] < t.threads)
        return "too few invocations for a large tile";
    if (limits.shared_memory < t.shared && !emulates_cooperative()) return "too little shared memory for a large tile";
    if (down(p, t) > kLargestGrid || across(p, t) > kLargestGrid ||
        static_cast<double>(p.batch) * chains(p) > kLargestGrid)
        return "more tiles than an axis of the grid takes";
    return nullptr;
}

const char* cannot_coopmat(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    const bool rounds = p.dtype == DType::f32 && p.precision == Precision::medium;
    if (p.dtype != DType::f16 && p.dtype != DType::bf16 && !rounds) return "cooperative matrices are for f16 and bf16";
    if (const char* reason = lacks_cooperative(limits, rounds ? DType::bf16 : p.dtype)) return reason;
    const Packs copies = packs(p, pipeline);
    if (pipeline == Pipeline::coopmat_wide && (p.b_along || copies.a || copies.b))
        return "it reads operands where they lie, the second along its rows";
    return cannot_tile(p, limits, pipeline);
}

const char* cannot_high(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    if (p.dtype != DType::f32 || p.precision != Precision::high) return "only f32 in high is split into halves";
    if (const char* reason = lacks_cooperative(limits, DType::f16)) return reason;
    return cannot_tile(p, limits, pipeline);
}

const char* cannot_parts(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    if (p.dtype != DType::f32 || p.precision != Precision::highest) return "only f32 in highest is cut into parts";
    if (const char* reason = lacks_cooperative(limits, DType::bf16)) return reason;
    return cannot_tile(p, limits, pipeline);
}

const char* cannot_split(const GemmProblem& p, const Limits&, Pipeline pipeline);

const char* cannot(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    switch (pipeline) {
        case Pipeline::gemv:
            return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch) >= 0x1p31
                       ? "more outputs than one grid takes"
                       : nullptr;
        case Pipeline::columns:
            if (p.m != 1) return "M is not 1";
            if (is_wide(p.dtype) || p.precision == Precision::exact) return "it adds f32, f16 and bf16 in chains";
            if (p.k == 0) return "K is 0";
            return static_cast<double>(p.n) * static_cast<double>(p.batch) * chains(p) >= 0x1p31
                       ? "more outputs than one grid takes"
                       : nullptr;
        case Pipeline::naive:
            return nullptr;
        case Pipeline::tiled:
            return lacks_blocked(limits);
        case Pipeline::db:
        case Pipeline::reg:
        case Pipeline::split_k:
            if (is_wide(p.dtype)) return "elements of this dtype are not packed by this kernel";
            if (const char* reason = lacks_blocked(limits)) return reason;
            return pipeline == Pipeline::split_k ? cannot_split(p, limits, pipeline) : nullptr;
        case Pipeline::coopmat:
        case Pipeline::coopmat_large:
        case Pipeline::coopmat_wide:
        case Pipeline::coopmat_small:
        case Pipeline::split_k_coopmat:
        case Pipeline::split_k_coopmat_small:
            if (const char* reason = cannot_coopmat(p, limits, pipeline)) return reason;
            return is_split(pipeline) ? cannot_split(p, limits, pipeline) : nullptr;
        case Pipeline::high:
        case Pipeline::high_small:
            return cannot_high(p, limits, pipeline);
        case Pipeline::parts:
        case Pipeline::parts_small:
        case Pipeline::parts_tiny:
        case Pipeline::parts_few:
            return cannot_parts(p, limits, pipeline);
        default:
            if (p.dtype != DType::f32) return "the large tiles are for f32";
            if (const char* reason = cannot_tile(p, limits, pipeline)) return reason;
            return is_split(pipeline) ? cannot_split(p, limits, pipeline) : nullptr;
    }
}

// Parts of K ----------------------------------------------------------------------------------------------------------

/// In `exact` all parts but the last hold the same power-of-two count of blocks, and the workspace holds all of them.
Choice split_exact(const GemmProblem& p, const Limits& limits) {
    const std::int64_t room =
        static_cast<std::int64_t>(kSplitWorkspace / sizeof(float)) / std::max<std::int64_t>(1, p.m * p.n);
    const auto wanted = static_cast<std::int64_t>(2 * units(limits));
    // Eight slices of 32 or more for each part, or adding the parts costs as much as it saves.
    std::int64_t parts = is_asked(Pipeline::split_k) ? std::int64_t{forced_splits()}
                                                     : std::min((wanted + tiles32(p) - 1) / tiles32(p), blocks(p) / 8);
    parts = std::min({parts, blocks(p), room, std::int64_t{kMostParts}});
    if (parts < 2) return {Pipeline::split_k, 1};
    const auto per_part = std::bit_ceil(static_cast<std::uint64_t>((blocks(p) + parts - 1) / parts));
    return {Pipeline::split_k, static_cast<std::uint32_t>(ceil_div(static_cast<std::uint64_t>(blocks(p)), per_part)),
            static_cast<std::uint32_t>(per_part * 32)};
}

/// Parts of one chain each: then the sums are those of the unsplit product. Asked for by name, as many as asked for.
Choice split(Pipeline pipeline, const GemmProblem& p, const Limits& limits) {
    if (p.precision == Precision::exact) return split_exact(p, limits);
    std::int64_t per_part = gemm_chain(p);
    if (pipeline == Pipeline::split_k && is_asked(pipeline))
        per_part = (blocks(p) + forced_splits() - 1) / forced_splits() * 32;
    if (is_cooperative(pipeline)) {
        // The sums inside a cooperative matrix are one chain anyway: as many parts as the device runs at once.
        const double parts = std::clamp(std::floor(2 * units(limits) / tiles(p, tile_of(pipeline))), 1.0,
                                        std::max(1.0, static_cast<double>(p.k / 512)));
        // Few lines are bound by reading the other operand: four parts keep more of it on its way.
        const double least =
            pipeline == Pipeline::split_k_coopmat_small ? std::min(4.0, static_cast<double>(p.k / 2048)) : 1.0;
        const std::int64_t slice = std::max(64u, tile_of(pipeline).k);
        per_part = static_cast<std::int64_t>(std::ceil(static_cast<double>(p.k) / std::max(parts, least)));
        per_part = (per_part + slice - 1) / slice * slice;
    }
    const std::int64_t parts = (p.k + per_part - 1) / per_part;
    return {pipeline, static_cast<std::uint32_t>(std::max<std::int64_t>(parts, 1)),
            static_cast<std::uint32_t>(per_part)};
}

const char* cannot_split(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    if (p.k == 0 || split(pipeline, p, limits).parts < 2) return "K or the workspace has no room for two parts";
    return static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.n) > kSplitWorkspace / sizeof(float) / 2
               ? "the output is larger than the workspace of two parts"
               : nullptr;
}

// What is not worth it, when the choice is free -----------------------------------------------------------------------

constexpr const char* kByParts = "N and K give many rows to bf16 parts, and a row alone has their bits";

const char* unwise_gemv(const GemmProblem& p, const Limits&, Pipeline) {
    if (gemv_is_off()) return "VKML_GEMV is OFF";
    if (!p.no_parts) return kByParts;
    const bool chained = !is_wide(p.dtype) && p.precision != Precision::exact;
    if (p.n != 1 && (chained || p.m != 1)) return "N is not 1";
    if (!p.k_packed) return "an operand is not packed along K, so lanes over K would not read neighbours";
    return p.k < 128 ? "K is shorter than a workgroup" : nullptr;
}

/// One row takes the order of many rows, so that it has their bits: gemv, with its own, is for one column.
const char* unwise_columns(const GemmProblem& p, const Limits&, Pipeline) {
    if (!p.no_parts) return kByParts;
    return p.n == 1 ? "N is 1" : nullptr;
}

/// A vector of outputs that gemv does not read well, and too few terms to share: tiles would be 31 parts of 32 empty.
const char* unwise_thin(const GemmProblem& p, const Limits&, Pipeline) {
    if (p.m != 1 && p.n != 1) return "neither M nor N is 1";
    return p.k > 256 ? "K is long enough for tiles" : nullptr;
}

/// `share` of the device's units must get a tile, and `full` of the tiles' outputs must exist.
const char* unwise_tile(const GemmProblem& p, const Limits& limits, Pipeline pipeline, double share, double full) {
    const Tile t = tile_of(pipeline);
    if (p.k < 16) return "K is shorter than a slice";
    if (filled(p, t) < full) return "too much of a tile would be empty";
    const Packs copies = packs(p, pipeline);
    if ((copies.a && p.n < 48) || (copies.b && p.m < 48)) return "the operands lie so that they must be copied first";
    const double parts = is_split(pipeline) ? split(pipeline, p, limits).parts : 1;
    if (tiles(p, t) * parts < share * units(limits)) return "too few tiles to fill the device";
    if (is_split(pipeline) && split_k_is_off()) return "VKML_GEMM_SPLITK is OFF";
    return nullptr;
}

constexpr double kFull = 0.75;  // of the units: the last wave of tiles is rarely fuller

/// Time of an unsplit f32 product in large or medium tiles: what the busiest unit has to do. A tile costs some terms of
/// K beside its own, and more for every further chain; two medium tiles on a unit do more than one. From runs on an
/// H200.
double tile_time(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    const Tile t = tile_of(pipeline);
    const double load = std::ceil(tiles(p, t) / units(limits)), terms = static_cast<double>(p.k), more = chains(p) - 1;
    if (pipeline == Pipeline::large) return load * t.m * t.n * (terms + 40 + 28 * more);
    return load * t.m * t.n * (terms + 12 + 4 * more) * (load < 2 ? 1.25 : 1.1);
}
const char* unwise_large(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (!is_split(self) && tile_time(p, limits, self) > tile_time(p, limits, Pipeline::medium) &&
        !cannot_tile(p, limits, Pipeline::medium))
        return "tiles of 64x128 end sooner: a short K, or a last wave less empty";
    return unwise_tile(p, limits, self, kFull, 0.75);
}
const char* unwise_medium(const GemmProblem& p, const Limits& limits, Pipeline self) {
    return unwise_tile(p, limits, self, kFull, 0.7);
}
const char* unwise_small(const GemmProblem& p, const Limits& limits, Pipeline self) {
    return unwise_tile(p, limits, self, kFull, 0.25);
}
const char* unwise_few(const GemmProblem& p, const Limits& limits, Pipeline self) {
    return unwise_tile(p, limits, self, 0.25, 0.5);
}

/// Time of a product in tiles, in outputs of one unit of the device: `at_once` tiles share a unit.
double waves(const GemmProblem& p, const Limits& limits, const Tile& t, double at_once) {
    return std::ceil(tiles(p, t) / (at_once * units(limits))) * at_once * t.m * t.n;
}
/// 192x128 does more with what it reads, 128x128 runs twice on a unit and leaves less of the device idle at the end.
/// Slices of 32 along K are half a line of memory, which costs 128x128 a sixth where K is the packed axis of B.
const char* unwise_coopmat_large(const GemmProblem& p, const Limits& limits, Pipeline self) {
    const bool along = p.b_along || packs(p, self).b;
    const double gain = along ? 1.2 : 1.05;
    if (waves(p, limits, tile_of(self), 1) > gain * waves(p, limits, tile_of(Pipeline::coopmat), 2))
        return "the last wave of 192x128 would be emptier than that of 128x128";
    return unwise_tile(p, limits, self, 2, 0.9);
}
/// 128x256 does most with what it reads: time per output 1, of 192x128 0.99 to 1.025, of 128x128 1.075. Where its last
/// wave would be emptier than the others', its last rows go to 192x128.
const char* unwise_coopmat_wide(const GemmProblem& p, const Limits& limits, Pipeline self) {
    const Tile t = tile_of(self);
    const bool shares = p.batch == 1 && p.k % tile_of(Pipeline::coopmat_large).k == 0;
    const auto on = static_cast<std::uint32_t>(units(limits));
    const double time = shares ? wide_rows(p.m, p.n, on).end * t.m * t.n : waves(p, limits, t, 1);
    if (time > waves(p, limits, tile_of(Pipeline::coopmat_large), 1) ||
        time > 1.075 * waves(p, limits, tile_of(Pipeline::coopmat), 2))
        return "the last wave of 128x256 would be emptier than those of smaller tiles";
    return unwise_tile(p, limits, self, 0.9, 0.9);
}
const char* unwise_coopmat(const GemmProblem& p, const Limits& limits, Pipeline self) {
    return unwise_tile(p, limits, self, 1.25, 0.51);
}
/// Parts of 1024 terms, or adding them costs as much as it saves.
const char* unwise_split_k_coopmat(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (split(self, p, limits).k_part < 1024) return "K is too short for parts that fill the device";
    return unwise_tile(p, limits, self, 1.25, 0.7);
}
const char* unwise_coopmat_small(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (!is_split(self) && p.m <= 64 && !cannot_split(p, limits, Pipeline::split_k_coopmat_small))
        return "half of its rows would be empty";
    return unwise_tile(p, limits, self, 0.5, 0.1);
}
/// Operands of f32 in medium have nowhere else to go.
const char* unwise_coopmat_few(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (p.dtype == DType::f32) return nullptr;
    return unwise_tile(p, limits, self, 0, 0.1);
}
/// The operands are split by kernels of their own, one matrix after another.
const char* unwise_high(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (p.batch > 16) return "more matrices than are worth splitting one after another";
    return unwise_tile(p, limits, self, self == Pipeline::high ? kFull : 0.25, 0.5);
}

/// Time of a product in tiles of bf16 parts, as the busiest unit has it: a tile alone keeps its matrices less busy, and
/// a small one cuts its operands for fewer products. From runs on an H200.
double parts_time(const GemmProblem& p, const Limits& limits, Pipeline pipeline) {
    const Tile t = tile_of(pipeline);
    const double load = std::ceil(tiles(p, t) / units(limits)), alone = load < 2 ? 1.6 : 1;
    return load * t.m * t.n * alone *
           (pipeline == Pipeline::parts         ? 1.0
            : pipeline == Pipeline::parts_small ? 1.12
                                                : 2.1);
}
const char* unwise_parts(const GemmProblem& p, const Limits& limits, Pipeline self) {
    if (p.no_parts) return p.no_parts;
    for (const Pipeline other : {Pipeline::parts_small, Pipeline::parts_tiny})
        if (other > self && !cannot_tile(p, limits, other) &&
            parts_time(p, limits, other) < parts_time(p, limits, self))
            return "smaller tiles end sooner";
    return nullptr;
}
const char* unwise_parts_few(const GemmProblem& p, const Limits&, Pipeline) {
    if (p.no_parts) return p.no_parts;
    return p.m > 16 ? "M is above 16" : nullptr;
}

const char* unwise_split_k(const GemmProblem& p, const Limits& limits, Pipeline) {
    if (split_k_is_off()) return "VKML_GEMM_SPLITK is OFF";
    if (static_cast<double>(tiles32(p)) >= 2 * units(limits)) return "the output tiles fill the device";
    return blocks(p) < tiles32(p) ? "K is short against the output" : nullptr;
}

const char* always(const GemmProblem&, const Limits&, Pipeline) { return nullptr; }

struct Row {
    Pipeline pipeline;
    const char* (*unwise)(const GemmProblem&, const Limits&, Pipeline);
};
constexpr Row kTable[] = {
    {Pipeline::gemv, unwise_gemv},
    {Pipeline::columns, unwise_columns},
    {Pipeline::naive, unwise_thin},
    {Pipeline::high, unwise_high},
    {Pipeline::high_small, unwise_high},
    {Pipeline::parts_few, unwise_parts_few},
    {Pipeline::parts, unwise_parts},
    {Pipeline::parts_small, unwise_parts},
    {Pipeline::parts_tiny, unwise_parts},
    {Pipeline::coopmat_wide, unwise_coopmat_wide},
    {Pipeline::coopmat_large, unwise_coopmat_large},
    {Pipeline::coopmat, unwise_coopmat},
    {Pipeline::split_k_coopmat, unwise_split_k_coopmat},
    {Pipeline::coopmat_small, unwise_coopmat_small},
    {Pipeline::split_k_coopmat_small, unwise_coopmat_small},
    {Pipeline::coopmat_small, unwise_coopmat_few},
    {Pipeline::large, unwise_large},
    {Pipeline::medium, unwise_medium},
    {Pipeline::split_k_large, unwise_large},
    {Pipeline::split_k_medium, unwise_medium},
    {Pipeline::small, unwise_small},
    {Pipeline::split_k_small, unwise_small},
    {Pipeline::small, unwise_few},
    {Pipeline::split_k, unwise_split_k},
    {Pipeline::reg, always},
    {Pipeline::tiled, always},
    {Pipeline::naive, always},
};

/// The refusals so far, and the choice at the end: one entry of the log.
class Log {
  public:
    Log(std::string_view op, std::uint64_t dispatch) : op_(op), dispatch_(dispatch), on_(recording_decisions()) {}
    void refuse(Pipeline pipeline, const char* reason) {
        if (!on_) return;
        if (refused_.empty())
            first_ = pipeline_name(pipeline);
        else
            refused_ += "; ";
        refused_ += std::string(pipeline_name(pipeline)) + ": " + reason;
    }
    void choose(Pipeline pipeline, const char* because) {
        if (!on_) return;
        std::string text = because ? because : refused_.empty() ? "first choice fits" : refused_;
        if (because && !refused_.empty()) text += "; " + refused_;
        publish({.site = "matmul.kernel",
                 .op = op_,
                 .chose = std::string(pipeline_name(pipeline)),
                 .instead_of = std::string(first_),
                 .because = text,
                 .seq = 0,
                 .dispatch = dispatch_});
    }

  private:
    std::string op_, refused_;
    std::string_view first_;
    std::uint64_t dispatch_;
    bool on_;
};

Choice chosen(Pipeline pipeline, const GemmProblem& problem, const Limits& limits) {
    const bool parts = is_split(pipeline) || pipeline == Pipeline::columns;
    return parts ? split(pipeline, problem, limits) : Choice{pipeline};
}

/// Below a name that was asked for, only the general kernels are left; reg by the environment may still split K.
bool is_left(Pipeline pipeline) {
    if (pipeline == Pipeline::split_k) return is_asked(Pipeline::reg) && !is_forced_for_tests();
    return pipeline == Pipeline::reg || pipeline == Pipeline::tiled || pipeline == Pipeline::naive;
}

}  // namespace

const char* lacks_cooperative(const Limits& limits, DType dtype) {
    if (emulates_cooperative()) return nullptr;
    if (!has_cooperative_matrices(limits, dtype))
        return "the device lists no 16x16x16 cooperative matrices of this dtype with f32 sums";
    if (!limits.subgroups_of_32) return "the device has no subgroups of 32";
    return nullptr;
}

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

PrecisionChoice choose_precision(std::string_view op, const GemmProblem& p, Device device, const Limits& limits,
                                 std::uint64_t dispatch) {
    const bool medium = p.precision == Precision::medium;
    if (p.dtype != DType::f32 || (!medium && p.precision != Precision::high)) {
        const bool lower = medium || p.precision == Precision::high;
        return {lower ? Precision::highest : p.precision};
    }
    const std::string_view asked = medium ? "medium" : "high";
    const char* refusal = "the device is the CPU";
    if (!device.is_cpu()) refusal = lacks_cooperative(limits, medium ? DType::bf16 : DType::f16);
    const int asked_kernel = forced_pipeline();
    if (!refusal && asked_kernel >= 0 && !is_cooperative(static_cast<Pipeline>(asked_kernel)))
        refusal = "another kernel is asked for by name";
    if (!refusal && (p.m == 1 || p.n == 1 || p.k == 0)) refusal = "M or N is 1, or K is 0";
    if (!refusal && std::min({p.m, p.n, p.k}) < 16) refusal = "an extent is shorter than a cooperative matrix";
    if (recording_decisions())
        publish({.site = "matmul.precision",
                 .op = std::string(op),
                 .chose = std::string(!refusal ? asked
                                      : medium ? "medium, operands rounded beforehand"
                                               : "highest"),
                 .instead_of = std::string(refusal ? asked : ""),
                 .because = refusal ? refusal : "cooperative matrices",
                 .seq = 0,
                 .dispatch = dispatch});
    if (!refusal) return {p.precision};
    return {Precision::highest, medium};
}

Choice choose_gemm(std::string_view op, const GemmProblem& problem, Device device, const Limits& limits,
                   std::uint64_t dispatch) {
    Log log(op, dispatch);
    const int asked = forced_pipeline();
    if (asked >= 0) {
        const auto pipeline = static_cast<Pipeline>(asked);
        const char* refusal = cannot(problem, limits, pipeline);
        const bool may_split = pipeline == Pipeline::reg && !is_forced_for_tests() && !refusal;
        if (!refusal && !(may_split && !cannot(problem, limits, Pipeline::split_k) &&
                          !unwise_split_k(problem, limits, Pipeline::split_k))) {
            log.choose(pipeline, "asked for by name");
            return chosen(pipeline, problem, limits);
        }
        if (refusal) log.refuse(pipeline, refusal);
    }
    const int tuned = asked >= 0 ? -1 : tuned_pipeline(problem, device);
    if (tuned >= 0) {
        const auto pipeline = static_cast<Pipeline>(tuned);
        const char* refusal = cannot(problem, limits, pipeline);
        if (!refusal && is_parts(pipeline) != !problem.no_parts)
            refusal = "it adds in another order than few rows would";
        if (!refusal) {
            log.choose(pipeline, "measured best by python -m vkml tune");
            return chosen(pipeline, problem, limits);
        }
        log.refuse(pipeline, refusal);
    }
    for (const Row& row : kTable) {
        if (asked >= 0 && !is_left(row.pipeline)) continue;
        const char* refusal = cannot(problem, limits, row.pipeline);
        if (!refusal) refusal = row.unwise(problem, limits, row.pipeline);
        if (!refusal) {
            log.choose(row.pipeline, nullptr);
            return chosen(row.pipeline, problem, limits);
        }
        log.refuse(row.pipeline, refusal);
    }
    return {Pipeline::naive};
}

}  // namespace vkml

#include "vkml/runtime/rows.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <iterator>

#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kChunks = 4;        // CHUNKS of every module, but for f32 where rows are long
constexpr std::uint32_t kSmallGroup = 128;  // several short rows share one, and every device allows it
constexpr std::uint32_t kAcrossRows = 32;
constexpr std::uint32_t kNarrowest = 32;    // invocations of a row before each takes more pieces
constexpr std::uint32_t kLongLanes = 1024;  // the most invocations on a row that does not fit
constexpr std::uint64_t kPartTiles = 2;     // rounds of those in one part of it
constexpr std::uint64_t kMostParts = 512;
constexpr std::uint64_t kWideMost = 300000;  // elements of the longest row that one workgroup reads alone

enum Structure : std::size_t { kResident, kWide, kSplit, kLooped };
std::atomic<int> forced{-1};

struct Problem {
    std::uint64_t rows, cols;
    std::uint32_t width;  // elements in 16 bytes
    bool across;
    std::uint32_t across_rows;
    std::uint32_t threads;  // the most
    std::uint32_t lanes;    // invocations on a long row, as far as the device has them
    std::uint32_t chunks;   // pieces an invocation holds of it
    int only;               // a forced structure, or -1
    bool packed_f32;        // one row behind the other, in 16-byte pieces
    std::span<const RowWide> wide;

    std::uint32_t most_lanes() const { return across ? kSmallGroup / across_rows : threads; }
    std::uint32_t long_lanes() const { return std::min(most_lanes(), lanes); }
};

/// Invocations on a long row and the pieces that each holds at once, at most CHUNKS of the modules.
struct LongRow {
    std::uint32_t lanes, chunks;
};

/// Where elements come one an access, or nothing of a row need stay, several small workgroups hide each other's waits.
LongRow long_row(const RowKernels& kernels, const RowArgs& args, DType dtype, bool vector) {
    const bool f32 = dtype == DType::f32, across = args.inner != 1;
    if (kernels.reduces && !across) return {vector ? 512u : f32 ? 256u : kLongLanes, kChunks};
    if (!f32 || (!vector && !across && args.second == 0)) return {kLongLanes, kChunks};
    return {kLongLanes, args.second != 0 ? 5u : 11u};
}

/// Rows that keep the device busy with a workgroup each: a split reads them once more from memory.
std::uint64_t enough_groups(const Limits& limits) {
    return 3ull * (limits.compute_units ? limits.compute_units : 64u) / 4;
}

const char* refuses_resident(const Problem& p, const Limits&) {
    if (p.only >= 0 && p.only != kResident) return "another structure is forced";
    return p.cols > std::uint64_t{p.most_lanes()} * p.width * kChunks
               ? "the row does not fit in a workgroup's registers"
               : nullptr;
}

/// The first module that the device and the row's length allow, or null.
const RowWide* wide_module(const Problem& p, const Limits& limits) {
    for (const RowWide& wide : p.wide) {
        // Beside the pieces, a state of three floats for every subgroup of four.
        const std::uint32_t shared = wide.threads * (16 * wide.held + 3);
        if (std::min(limits.max_workgroup_invocations, limits.max_workgroup_size[0]) >= wide.threads &&
            limits.min_subgroup_size >= 4 && limits.shared_memory >= shared &&
            p.cols >= std::uint64_t{wide.threads} * p.width * (wide.held + wide.chunks))
            return &wide;
    }
    return nullptr;
}

const char* refuses_wide(const Problem& p, const Limits& limits) {
    if (p.only >= 0 && p.only != kWide) return "another structure is forced";
    if (!p.packed_f32) return "the rows are not of packed and aligned f32 elements";
    if (!wide_module(p, limits)) return "the row is too short, or workgroups are too small";
    if (p.only == kWide) return nullptr;
    return p.cols > kWideMost ? "the row is long enough to share" : nullptr;
}

const char* refuses_split(const Problem& p, const Limits& limits) {
    if (p.only == kSplit) return nullptr;
    if (p.only >= 0) return "another structure is forced";
    if (p.cols <= std::uint64_t{p.long_lanes()} * p.width * p.chunks * kPartTiles)
        return "the row is too short to share";
    const std::uint64_t rows_per_group = p.across ? p.across_rows : 1;
    return ceil_div(p.rows, rows_per_group) >= enough_groups(limits) ? "the rows fill the device" : nullptr;
}

constexpr Variant<Problem> structures[] = {
    {"resident", refuses_resident}, {"wide", refuses_wide}, {"split", refuses_split}, {"looped", never<Problem>}};

bool vectorises(const RowArgs& a, int rank, std::uint32_t width, bool float_parameters) {
    if (a.x_step != 1 || a.inner != 1 || a.cols % width != 0) return false;
    for (Address p : {a.x, a.second, a.y})
        if (p % 16 != 0) return false;
    if (!float_parameters && (a.weight % 16 != 0 || a.bias % 16 != 0)) return false;
    for (int i = 0; i < rank; i++)
        if (a.strides[i] % width != 0) return false;
    return true;
}

std::uint32_t most_threads(const Limits& limits) {
    std::uint32_t most = std::min({limits.max_workgroup_invocations, limits.max_workgroup_size[0], 1024u});
    most = std::min(most, 256 * std::max(limits.min_subgroup_size, 1u));  // a shared slot for every subgroup
    return std::max(std::bit_floor(most), kSmallGroup);
}

/// Threads, lanes per row and pieces per lane.
struct Geometry {
    std::uint32_t threads, lanes, chunks, parts = 1;

    /// States that a fold shares (slang/reduce.slang).
    std::uint32_t slots(bool across, const Limits& limits) const {
        return across || lanes < limits.max_subgroup_size ? 2 * threads
                                                          : threads / std::max(limits.min_subgroup_size, 1u);
    }
};

Geometry geometry(const Problem& p, std::size_t structure) {
    const std::uint64_t pieces = ceil_div(p.cols, p.width);
    Geometry g{};
    if (structure == kResident) {
        // Four pieces per lane keep enough loads in flight and share the cost of the fold; short rows take a subgroup
        // first.
        const auto power = [&](std::uint64_t each) {
            return std::bit_ceil(std::max<std::uint64_t>(1, ceil_div(pieces, each)));
        };
        const std::uint64_t lanes = std::max(power(kChunks), std::min<std::uint64_t>(power(2), kNarrowest));
        g.lanes = static_cast<std::uint32_t>(std::min<std::uint64_t>(lanes, p.most_lanes()));
        g.chunks = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, ceil_div(pieces, g.lanes)));
        g.threads = p.across ? g.lanes * p.across_rows : g.lanes;
        if (p.across || g.lanes <= kNarrowest) g.threads = std::max(g.threads, kSmallGroup);
        return g;
    }
    // From the row's length alone, and the same for both: a row has the same bits whatever the batch around it.
    g.chunks = p.chunks;
    g.lanes = p.long_lanes();
    g.threads = p.across ? kSmallGroup : g.lanes;
    g.parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        ceil_div(pieces, static_cast<std::uint64_t>(g.lanes) * g.chunks * kPartTiles), kMostParts));
    return g;
}

void launch_split(Stream& on, const RowKernels& kernels, DType dtype, const Spec& spec, Grid grid, RowArgs args,
                  std::uint64_t parts, UseList reads, UseList writes) {
    const std::size_t value = dtype == DType::f64 ? 8 : 4;
    const Storage scratch = on.allocate(static_cast<std::size_t>(args.rows * parts) * 3 * value);
    args.scratch = scratch->address;
    on.launch(*kernels.partial, dtype, spec, grid, args, reads, {scratch});
    // The second dispatch reads the scratch as well.
    Use all[7] = {scratch, Tensor{}, Tensor{}, Tensor{}, Tensor{}, Tensor{}, Tensor{}};
    VKML_ASSERT(reads.size() < std::size(all));
    std::copy(reads.begin(), reads.end(), all + 1);
    on.launch(*kernels.apply, dtype, spec, grid, args, {all[0], all[1], all[2], all[3], all[4], all[5], all[6]},
              writes);
}

}  // namespace

RowLayout row_layout(const Tensor& x, int axis, int count) {
    RowLayout out;
    const Shape& shape = x.shape();
    Shape row_shape, inside;
    Strides row_strides, inside_strides;
    std::uint64_t inner = 1, cols = 1;
    for (int i = 0; i < shape.size(); i++) {
        const bool reduced = i >= axis && i < axis + count;
        (reduced ? inside : row_shape).push_back(shape[i]);
        (reduced ? inside_strides : row_strides).push_back(x.strides()[i]);
        if (reduced) cols *= static_cast<std::uint64_t>(shape[i]);
        if (i >= axis + count) inner *= static_cast<std::uint64_t>(shape[i]);
    }
    const Collapsed element = collapse(inside, {&inside_strides, 1});
    const Collapsed rows = collapse(row_shape, {&row_strides, 1});
    if (element.shape.size() > 1 || rows.shape.size() > 3) return out;
    constexpr std::uint64_t most = std::uint64_t{1} << 31;
    check<NotImplementedError>(cols < most && inner < most,
                               "rows: expected fewer than 2147483648 elements along and behind the axis, got ",
                               std::max(cols, inner));
    RowArgs& a = out.args;
    a.x = x.address();
    a.rows = static_cast<std::uint64_t>(numel(row_shape));
    a.cols = static_cast<std::uint32_t>(cols);
    a.inner = static_cast<std::uint32_t>(inner);
    a.x_step = element.strides[0][0];
    for (int i = 0; i < rows.shape.size(); i++) {
        a.strides[i] = rows.shape[i] == 1 ? 0 : rows.strides[0][i];
        if (i > 0) {
            if (rows.shape[i] >= static_cast<std::int64_t>(most)) return out;
            a.sizes[i - 1] = static_cast<std::uint32_t>(rows.shape[i]);
        }
    }
    out.rank = rows.shape.size();
    return out;
}

void launch_rows(std::string_view op, const RowKernels& kernels, const Tensor& x, const RowLayout& layout,
                 bool float_parameters, std::uint32_t flag, UseList reads, UseList writes) {
    Stream& on = stream_of(x);
    const RowArgs& args = layout.args;
    if (args.rows == 0 || args.cols == 0) return;
    const auto rank = static_cast<std::uint32_t>(layout.rank);
    const auto parameters = float_parameters ? 1u : 0u;
    if (on.backend().synchronous()) {
        on.launch(*kernels.resident, x.dtype(), Spec{1, 1, 0, 0, 1, rank, 1, parameters, flag, 0, 1, 0}, Grid{}, args,
                  reads, writes);
        return;
    }
    const Limits& limits = on.limits();
    const auto width = static_cast<std::uint32_t>(16 / itemsize(x.dtype()));
    const bool vector = vectorises(args, layout.rank, width, float_parameters);
    const LongRow row = long_row(kernels, args, x.dtype(), vector);
    Problem p{args.rows, args.cols,  width,         args.inner != 1, 1,           most_threads(limits),
              row.lanes, row.chunks, forced.load(), false,           kernels.wide};
    p.across_rows =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(std::bit_ceil(std::uint64_t{args.inner}), kAcrossRows));
    const std::uint32_t given = (args.weight != 0 ? 1u : 0u) | (args.bias != 0 ? 2u : 0u);
    p.packed_f32 = x.dtype() == DType::f32 && rank == 1 && vector && !float_parameters;
    const std::size_t structure = choose(kernels.site, op, structures, p, limits);
    if (structure == kWide) {
        const Spec spec{0, 0, 0, 0, 0, 0, 0, 0, flag, given};
        on.launch(*wide_module(p, limits)->kernel, x.dtype(), spec, linear_grid(args.rows), args, reads, writes);
        return;
    }
    const Geometry g = geometry(p, structure);
    const bool unit = args.x_step == 1 && args.inner == 1;
    const Spec spec{
        g.threads, g.lanes, p.across ? 1u : 0u,        vector ? 1u : 0u, g.chunks, rank, g.parts, parameters,
        flag,      given,   g.slots(p.across, limits), unit ? 1u : 0u};
    const Grid grid = linear_grid(ceil_div(args.rows, g.threads / g.lanes) * (structure == kSplit ? g.parts : 1));
    if (structure == kSplit)
        launch_split(on, kernels, x.dtype(), spec, grid, args, g.parts, reads, writes);
    else
        on.launch(structure == kResident ? *kernels.resident : *kernels.looped, x.dtype(), spec, grid, args, reads,
                  writes);
}

void force_row_structure(std::string_view name) {
    int found = -1;
    for (int i = 0; i < static_cast<int>(std::size(structures)); i++)
        if (structures[i].name == name) found = i;
    check(found >= 0 || name.empty(), "force_row_structure: expected resident, wide, split, looped or nothing, got ",
          name);
    forced = found;
}

}  // namespace vkml

#include "vkml/ops/reduce/structure.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <tuple>
#include <utility>

#include "vkml/core/scalar.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr int kMaxAxes = 6;
constexpr std::uint64_t kFlight = 4;  // of structures.slang
// Workgroups of 256 that fill a device which does not say how many cores it has.
constexpr std::uint64_t kDefaultUnits = 128, kGroupsPerUnit = 8;

/// A reduction with its axes merged: what the kernels see.
struct Problem {
    Collapsed kept, reduced;
    std::uint64_t results, length, width;  // width: elements in sixteen bytes
    bool cpu;
    bool aligned_rows, aligned_columns;

    std::int64_t row_step() const { return reduced.strides[0].back(); }
    std::int64_t column_step() const { return kept.strides[0].back(); }
};

Collapsed collapse_axes(const Layout& layout, const Dims& axes, bool by_stride) {
    Dims order = axes;
    if (by_stride)
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return std::abs(layout.strides[static_cast<int>(a)]) > std::abs(layout.strides[static_cast<int>(b)]);
        });
    Shape shape;
    Strides strides;
    for (std::int64_t axis : order) {
        shape.push_back(layout.shape[static_cast<int>(axis)]);
        strides.push_back(layout.strides[static_cast<int>(axis)]);
    }
    return collapse(shape, std::span(&strides, 1));
}

bool multiples(const Strides& strides, int count, std::uint64_t of) {
    for (int i = 0; i < count; i++)
        if (static_cast<std::uint64_t>(std::abs(strides[i])) % of != 0) return false;
    return true;
}

/// True when accesses of sixteen bytes along the last axis of `along` stay aligned wherever `across` and the outer axes lead.
bool aligned(const Tensor& x, const Collapsed& along, const Collapsed& across, std::uint64_t width, bool tail) {
    const int last = along.shape.size() - 1;
    if (along.strides[0][last] != 1 || x.address() % 16 != 0) return false;
    const bool whole = static_cast<std::uint64_t>(along.shape[last]) % width == 0;
    return (whole || (tail && last == 0)) && multiples(along.strides[0], last, width) &&
           multiples(across.strides[0], across.shape.size(), width);
}

Dims other_axes(int rank, const Dims& axes) {
    Dims out;
    for (int i = 0; i < rank; i++)
        if (std::ranges::find(axes, i) == axes.end()) out.push_back(i);
    return out;
}

Problem problem_of(const Fold& fold, const Tensor& x, const Dims& axes) {
    Problem p;
    p.kept = collapse_axes(x.layout(), other_axes(x.ndim(), axes), false);
    p.reduced = collapse_axes(x.layout(), axes, !fold.ordered);
    p.results = static_cast<std::uint64_t>(numel(p.kept.shape));
    p.length = static_cast<std::uint64_t>(numel(p.reduced.shape));
    p.width = 16 / itemsize(x.dtype());
    p.cpu = x.device().is_cpu();
    p.aligned_rows = aligned(x, p.reduced, p.kept, p.width, true);
    p.aligned_columns = aligned(x, p.kept, p.reduced, p.width, false);
    return p;
}

/// Indices of several axes are 32-bit in the kernels, and only so many axes fit the arguments.
bool fits_arguments(const Problem& p) {
    const auto small = [](const Collapsed& c) { return c.shape.size() == 1 || numel(c.shape) < (std::int64_t{1} << 32); };
    return p.kept.shape.size() + p.reduced.shape.size() <= kMaxAxes && small(p.kept) && small(p.reduced);
}

/// x with the kept axes first and then the reduced ones, packed: at most one axis of each remains.
std::pair<Tensor, Dims> pack(const Tensor& x, const Dims& axes) {
    Dims order = other_axes(x.ndim(), axes), packed_axes;
    for (std::int64_t axis : axes) {
        packed_axes.push_back(order.size());
        order.push_back(axis);
    }
    return {contiguous(x.view(permute(x.layout(), order))), packed_axes};
}

/// How a problem is cut into workgroups.
struct Cut {
    bool columns = false, vectors = false;
    std::uint32_t threads = 256, lanes = 1;
    std::uint64_t groups = 1;  // for one part
    std::uint64_t parts = 1, span = 0;
};

/// At least n, at most `most`: 1, 4, 16, ... Every other power of two keeps the number of pipelines down.
std::uint64_t lanes_for(std::uint64_t n, std::uint64_t most) {
    std::uint64_t lanes = 1;
    while (lanes < n && lanes < most) lanes *= 4;
    return std::min(lanes, most);
}

Cut cut_rows(const Problem& p, const Limits& limits, bool vectors) {
    Cut cut{.vectors = vectors, .threads = limits.max_workgroup_invocations >= 256 ? 256u : 128u};
    const std::uint64_t accesses = ceil_div(p.length, vectors ? p.width : 1);
    cut.lanes = static_cast<std::uint32_t>(lanes_for(ceil_div(accesses, kFlight), cut.threads));
    cut.groups = ceil_div(p.results, cut.threads / cut.lanes);
    return cut;
}

Cut cut_columns(const Problem& p, const Limits& limits, bool vectors) {
    Cut cut{.columns = true, .vectors = vectors, .threads = limits.max_workgroup_invocations >= 256 ? 256u : 128u};
    const std::uint64_t across = p.results / (vectors ? p.width : 1);
    const std::uint64_t depth = p.length <= kFlight ? 1 : 8;
    cut.lanes = static_cast<std::uint32_t>(lanes_for(across, cut.threads / depth));
    cut.groups = ceil_div(across, cut.lanes);
    return cut;
}

/// Splits the reduced axes when the results alone leave the device idle.
void split(Cut& cut, const Problem& p, const Limits& limits) {
    const std::uint64_t wanted = kGroupsPerUnit * (limits.compute_units ? limits.compute_units : kDefaultUnits);
    const std::uint64_t side = cut.columns ? cut.threads / cut.lanes : std::uint64_t{cut.lanes} * (cut.vectors ? p.width : 1);
    const std::uint64_t round = side * kFlight;  // reduced elements a workgroup reads at once
    cut.span = std::max<std::uint64_t>(p.length, 1);
    if (cut.groups < wanted) {
        const std::uint64_t parts = std::min(ceil_div(wanted, cut.groups), p.length / round);
        if (parts > 1) cut.span = ceil_div(ceil_div(p.length, parts), round) * round;
    }
    cut.span = std::min(cut.span, std::uint64_t{1} << 30);
    cut.parts = std::max<std::uint64_t>(1, ceil_div(p.length, cut.span));
}

/// A problem with the cut each structure would make of it.
struct Plan {
    const Problem& problem;
    Cut cut;
    bool columns;
};

const char* refuses_split(const Plan& plan, const Limits&) {
    if (plan.problem.cpu) return "the CPU splits rows by itself";
    return plan.cut.parts > 1 ? nullptr : "the results alone fill the device, or each is short";
}
const char* refuses_rows(const Plan& plan, const Limits&) {
    return plan.columns || plan.problem.row_step() != 1 ? "the reduced elements do not lie beside each other" : nullptr;
}
const char* refuses_columns(const Plan& plan, const Limits&) {
    return !plan.columns || plan.problem.column_step() != 1 ? "the results do not lie beside each other" : nullptr;
}
constexpr Variant<Plan> kStructures[] = {
    {"split", refuses_split}, {"rows", refuses_rows}, {"columns", refuses_columns}, {"strided", never<Plan>}};

bool by_columns(const Problem& p) {
    if (p.length <= 1 || p.results <= 1) return p.results > 1;
    if (p.cpu) {
        // Short rows are folded side by side; a handful of neighbours is no tile.
        if (p.length <= 32 && p.kept.shape.back() >= 64) return true;
        if (p.kept.shape.back() < 8) return false;
    }
    return std::abs(p.column_step()) < std::abs(p.row_step());
}

ReduceArgs arguments(const Fold& fold, const Problem& p, const Tensor& x, const Cut& cut) {
    ReduceArgs args{.x = x.address(), .y = 0, .index = 0, .strides = {}, .sizes = {}, .kept = p.results, .reduced = p.length,
                    .span = static_cast<std::uint32_t>(std::min<std::uint64_t>(cut.span, UINT32_MAX)),
                    .parts = static_cast<std::uint32_t>(cut.parts),
                    .divisor = {static_cast<std::uint32_t>(fold.divisor), static_cast<std::uint32_t>(fold.divisor >> 32)}};
    int at = 0;
    for (const Collapsed* axes : {&p.kept, &p.reduced})
        for (int i = 0; i < axes->shape.size(); i++, at++) {
            args.strides[at] = axes->strides[0][i];
            args.sizes[at] = static_cast<std::uint32_t>(axes->shape[i]);
        }
    return args;
}

void launch(const Fold& fold, const Problem& p, const Tensor& x, const Tensor& y, const Tensor& index, const Cut& cut) {
    Stream& on = stream_of(x);
    ReduceArgs args = arguments(fold, p, x, cut);
    const auto ranks = [&](bool from_states, bool to_states) {
        return Spec{cut.threads, cut.lanes, fold.operation, fold.finish, static_cast<std::uint32_t>(p.kept.shape.size()),
                    static_cast<std::uint32_t>(p.reduced.shape.size()), cut.vectors, from_states, to_states};
    };
    const Kernel& kernel = cut.columns ? fold.columns : fold.rows;
    const Grid grid = linear_grid(cut.columns ? cut.groups * cut.parts : ceil_div(p.results * cut.parts, cut.threads / cut.lanes));
    if (cut.parts == 1) {
        args.y = y.defined() ? y.address() : 0;
        args.index = index.defined() ? index.address() : 0;
        on.launch(kernel, x.dtype(), ranks(false, fold.keeps_state), grid, args, {x}, {y, index});
        return;
    }
    const Storage states = on.allocate(p.results * cut.parts * fold.state_bytes);
    args.y = states->address;
    on.launch(kernel, x.dtype(), ranks(false, true), grid, args, {x}, {states});

    const auto lanes = static_cast<std::uint32_t>(lanes_for(cut.parts, cut.threads));
    args.x = states->address;
    args.y = y.defined() ? y.address() : 0;
    args.index = index.defined() ? index.address() : 0;
    args.reduced = cut.parts;
    args.parts = 1;
    const Spec spec{cut.threads, lanes, fold.operation, fold.finish, 0, 0, 0, 1, fold.keeps_state};
    on.launch(fold.rows, x.dtype(), spec, linear_grid(ceil_div(p.results, cut.threads / lanes)), args, {states}, {y, index});
}

}  // namespace

void reduce(const Fold& fold, const Tensor& input, const Dims& input_axes, const Tensor& y, const Tensor& index) {
    Tensor x = input;
    Dims axes = input.ndim() == 0 ? Dims{} : input_axes;
    Problem p = problem_of(fold, x, axes);
    if (p.results == 0) return;
    if (!fits_arguments(p)) {
        std::tie(x, axes) = pack(input, axes);
        p = problem_of(fold, x, axes);
    }
    const Limits& limits = stream_of(x).limits();
    const bool columns = by_columns(p);
    Cut cut = columns ? cut_columns(p, limits, p.aligned_columns) : cut_rows(p, limits, p.aligned_rows);
    if (p.cpu) cut.span = p.length;
    else split(cut, p, limits);
    choose("reduce.structure", fold.op, kStructures, Plan{p, cut, columns}, limits);
    launch(fold, p, x, y, index, cut);
}

void reduce_exactly(const Fold& fold, const Tensor& input, const Dims& input_axes, const Tensor& y) {
    constexpr std::uint32_t kRun = 32;
    Tensor x = input;
    Dims axes = input.ndim() == 0 ? Dims{} : input_axes;
    Problem p = problem_of(fold, x, axes);
    if (p.results == 0) return;
    if (!fits_arguments(p)) {
        std::tie(x, axes) = pack(input, axes);
        p = problem_of(fold, x, axes);
    }
    Stream& on = stream_of(x);
    const std::uint32_t threads = on.limits().max_workgroup_invocations >= 256 ? 256u : 128u;
    Cut cut{.threads = threads};
    cut.span = p.cpu ? p.length : std::uint64_t{threads} * kRun;
    Storage states;
    for (bool from_states = false;; from_states = true) {
        cut.parts = p.cpu ? 1 : std::max<std::uint64_t>(1, ceil_div(p.length, cut.span));
        const bool last = cut.parts == 1;
        ReduceArgs args = arguments(fold, p, x, cut);
        if (from_states) args.x = states->address;
        const Storage target = last ? y.storage() : on.allocate(p.results * cut.parts * fold.state_bytes);
        args.y = last ? y.address() : target->address;
        const Spec spec{threads, 1, 0, fold.finish, static_cast<std::uint32_t>(p.kept.shape.size()),
                        static_cast<std::uint32_t>(p.reduced.shape.size()), 0, from_states, !last};
        const Use source = from_states ? Use(states) : Use(x);
        on.launch(fold.rows, x.dtype(), spec, linear_grid(p.results * cut.parts), args, {source}, {target});
        if (last) return;
        states = target;
        p.length = cut.parts;
        cut.span = threads;
    }
}

Shape reduced_shape(const Shape& shape, const Dims& axes, bool keepdim) {
    Shape out;
    for (int i = 0; i < shape.size(); i++) {
        if (std::ranges::find(axes, i) == axes.end()) out.push_back(shape[i]);
        else if (keepdim) out.push_back(1);
    }
    return out;
}

std::int64_t reduced_count(const Shape& shape, const Dims& axes) {
    std::int64_t n = 1;
    for (std::int64_t axis : axes)
        if (axis < shape.size()) n *= shape[static_cast<int>(axis)];
    return n;
}

std::uint64_t accumulator_bits(DType d, double value) { return Scalar(value).bits(accumulator(d)); }

}  // namespace vkml

#include "vkml/ops/matmul/gemm_tiles.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "vkml/ops/matmul/gemm_coopmat.spv.h"
#include "vkml/ops/matmul/gemm_flags.h"
#include "vkml/ops/matmul/gemm_high.spv.h"
#include "vkml/ops/matmul/gemm_high_args.h"
#include "vkml/ops/matmul/gemm_large.spv.h"
#include "vkml/ops/matmul/gemm_pack.spv.h"
#include "vkml/ops/matmul/gemm_pack_args.h"
#include "vkml/ops/matmul/gemm_parts.spv.h"
#include "vkml/ops/matmul/gemm_parts_few.spv.h"
#include "vkml/ops/matmul/gemm_split_both.spv.h"
#include "vkml/ops/matmul/gemm_split_both_args.h"
#include "vkml/ops/matmul/gemm_split_columns.spv.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

static_assert(sizeof(GemmPackArgs) <= kMaxPushConstants);
static_assert(sizeof(GemmSplitBothArgs) <= kMaxPushConstants);
static_assert(sizeof(GemmHighArgs) <= kMaxPushConstants);

// By layout: both row-major; B packed along K; A packed along its rows.
constexpr Kernel large[] = {
    {"gemm_large", spv::gemm_large_nn}, {"gemm_large", spv::gemm_large_nt}, {"gemm_large", spv::gemm_large_tn}};
constexpr Kernel medium[] = {
    {"gemm_large", spv::gemm_medium_nn}, {"gemm_large", spv::gemm_medium_nt}, {"gemm_large", spv::gemm_medium_tn}};
constexpr Kernel small[] = {
    {"gemm_large", spv::gemm_small_nn}, {"gemm_large", spv::gemm_small_nt}, {"gemm_large", spv::gemm_small_tn}};
constexpr Kernel coopmat_nn_nt_tn[] = {{"gemm_coopmat", spv::gemm_coopmat_nn},
                                       {"gemm_coopmat", spv::gemm_coopmat_nt},
                                       {"gemm_coopmat", spv::gemm_coopmat_tn}};
constexpr Kernel coopmat_large[] = {{"gemm_coopmat", spv::gemm_coopmat_large_nn},
                                    {"gemm_coopmat", spv::gemm_coopmat_large_nt},
                                    {"gemm_coopmat", spv::gemm_coopmat_large_tn}};
constexpr Kernel coopmat_wide[] = {
    {"gemm_coopmat", spv::gemm_coopmat_wide_nn}, {}, {"gemm_coopmat", spv::gemm_coopmat_wide_tn}};
constexpr Kernel coopmat_small[] = {{"gemm_coopmat", spv::gemm_coopmat_small_nn},
                                    {"gemm_coopmat", spv::gemm_coopmat_small_nt},
                                    {"gemm_coopmat", spv::gemm_coopmat_small_tn}};
constexpr Kernel coopmat_few[] = {{"gemm_coopmat", spv::gemm_coopmat_few_nn},
                                  {"gemm_coopmat", spv::gemm_coopmat_few_nt},
                                  {"gemm_coopmat", spv::gemm_coopmat_few_tn}};
constexpr Kernel parts[] = {
    {"gemm_parts", spv::gemm_parts_nn}, {"gemm_parts", spv::gemm_parts_nt}, {"gemm_parts", spv::gemm_parts_tn}};
constexpr Kernel parts_small[] = {{"gemm_parts", spv::gemm_parts_small_nn},
                                  {"gemm_parts", spv::gemm_parts_small_nt},
                                  {"gemm_parts", spv::gemm_parts_small_tn}};
constexpr Kernel parts_tiny[] = {{"gemm_parts", spv::gemm_parts_tiny_nn},
                                 {"gemm_parts", spv::gemm_parts_tiny_nt},
                                 {"gemm_parts", spv::gemm_parts_tiny_tn}};
// Of operands that lie as they like, too.
constexpr Kernel parts_few[] = {{"gemm_parts_few", spv::gemm_parts_few_nn},
                                {"gemm_parts_few", spv::gemm_parts_few_nt},
                                {"gemm_parts_few", spv::gemm_parts_few_any}};
constexpr Kernel pack_copy{"gemm_pack", spv::gemm_pack_copy}, pack_bf16{"gemm_pack", spv::gemm_pack_bf16},
    pack_halves{"gemm_pack", spv::gemm_pack_halves}, split_lines{"gemm_split_lines", spv::gemm_split_lines},
    split_both{"gemm_split_both", spv::gemm_split_both}, peak{"gemm_peak", spv::gemm_peak};
// By the terms of a line that they hold: four for each invocation.
constexpr Kernel split_columns[] = {{"gemm_split_columns", spv::gemm_split_columns_1024},
                                    {"gemm_split_columns", spv::gemm_split_columns_2048},
                                    {"gemm_split_columns", spv::gemm_split_columns_4096}};
constexpr Kernel high{"gemm_high", spv::gemm_high}, high_small{"gemm_high", spv::gemm_high_small};

constexpr CooperativeKernels on_device{coopmat_nn_nt_tn, coopmat_large, coopmat_wide, coopmat_small, coopmat_few, &high,
                                       &high_small,      parts,         parts_small,  parts_tiny};
std::atomic<const CooperativeKernels*> emulated{nullptr};

const CooperativeKernels& cooperative() {
    const CooperativeKernels* tests = emulated.load(std::memory_order_relaxed);
    return tests ? *tests : on_device;
}

const Kernel* kernels_of(Pipeline pipeline) {
    switch (pipeline) {
        case Pipeline::large:
        case Pipeline::split_k_large:
            return large;
        case Pipeline::medium:
        case Pipeline::split_k_medium:
            return medium;
        case Pipeline::coopmat:
        case Pipeline::split_k_coopmat:
            return cooperative().coopmat;
        case Pipeline::coopmat_large:
            return cooperative().coopmat_large;
        case Pipeline::coopmat_wide:
            return cooperative().coopmat_wide;
        case Pipeline::coopmat_small:
            return cooperative().coopmat_small;
        case Pipeline::split_k_coopmat_small:
            return cooperative().coopmat_few;
        case Pipeline::parts:
            return cooperative().parts;
        case Pipeline::parts_small:
            return cooperative().parts_small;
        case Pipeline::parts_tiny:
            return cooperative().parts_tiny;
        default:
            return small;
    }
}

bool rounds_to_bf16(const Product& p, Pipeline pipeline) {
    return p.problem.dtype == DType::f32 && is_cooperative(pipeline);
}

std::uint32_t round_up(std::uint64_t value, std::uint64_t to) {
    return static_cast<std::uint32_t>(ceil_div(value, to) * to);
}

/// Tiles across, tiles down, and `deep` of these.
Grid tile_grid(Pipeline pipeline, const GemmArgs& args, std::uint32_t deep) {
    const Tile tile = tile_of(pipeline);
    return {static_cast<std::uint32_t>(ceil_div(args.n, tile.n)), static_cast<std::uint32_t>(ceil_div(args.m, tile.m)),
            deep};
}

/// Where an operand lies and goes; `to` and the padded extents are left open.
GemmPackArgs pack_args(const GemmArgs& args, bool first) {
    const std::int64_t outer = first ? args.a_outer : args.b_outer, inner = first ? args.a_inner : args.b_inner;
    GemmPackArgs pack{.from = first ? args.a : args.b,
                      .to = 0,
                      .peaks = 0,
                      .partial = 0,
                      .line = first ? args.a_row : args.b_col,
                      .k = first ? args.a_col : args.b_row,
                      .outer = outer,
                      .inner = inner,
                      .lines = first ? args.m : args.n,
                      .depth = args.k,
                      .lines_padded = 0,
                      .depth_padded = 0,
                      .batch = args.batch,
                      .batch_inner = args.batch_inner,
                      .parts = 1};
    // A matrix that a whole batch shares is copied once.
    if (outer == 0 && inner == 0) pack.batch = pack.batch_inner = 1;
    return pack;
}

bool reads_along(const GemmPackArgs& pack) { return std::abs(pack.k) <= std::abs(pack.line); }

/// Of 16 bytes, at multiples of 16 bytes.
bool reads_vectors(const GemmPackArgs& pack, DType dtype) {
    const bool along = reads_along(pack);
    const auto per = static_cast<std::int64_t>(16 / itemsize(dtype));
    return (along ? pack.k : pack.line) == 1 && (along ? pack.line : pack.k) % per == 0 && pack.outer % per == 0 &&
           pack.inner % per == 0 && pack.from % 16 == 0;
}

constexpr std::uint32_t kPackThreads = 128, kPackLines = 64, kPackDepth = 32;  // as in gemm_pack.slang

/// How a workgroup reads: the axis that neighbouring threads read along, whether they can in vectors, and how many
/// slices one after another. Short runs for a small operand, which many workgroups finish sooner.
struct PackPlan {
    Spec spec;
    Grid grid;
};
PackPlan plan_pack(const Stream& on, const GemmPackArgs& pack, DType dtype) {
    const bool along = reads_along(pack), aligned = reads_vectors(pack, dtype);
    const std::uint64_t lines = std::uint64_t{pack.batch} * pack.lines_padded;
    const std::uint64_t slices = pack.depth_padded / kPackDepth, tiles = lines / kPackLines * slices;
    const std::uint32_t run = tiles < 16 * std::uint64_t{std::max(on.limits().compute_units, 16u)} ? 1 : 4;
    return {Spec{along, aligned, run}, linear_grid(along ? ceil_div(lines * (pack.depth_padded / 8), kPackThreads)
                                                         : lines / kPackLines * ceil_div(slices, run))};
}

}  // namespace

void emulate_cooperative(const CooperativeKernels* kernels) { emulated.store(kernels, std::memory_order_relaxed); }
bool emulates_cooperative() { return emulated.load(std::memory_order_relaxed) != nullptr; }

std::size_t operand_itemsize(const Product& p, Pipeline pipeline) {
    return rounds_to_bf16(p, pipeline) ? 2 : itemsize(p.problem.dtype);
}

Tensor ready_operand(Stream& on, const Product& p, GemmArgs& args, Pipeline pipeline, bool first) {
    const Tensor& own = first ? p.a : p.b;
    if (pipeline <= Pipeline::split_k) return own;
    const Packs copies = packs(p.problem, pipeline);
    if (!(first ? copies.a : copies.b)) return own;
    const Tile tile = tile_of(pipeline);
    GemmPackArgs pack = pack_args(args, first);
    pack.depth = static_cast<std::uint32_t>(p.problem.k);  // the first operand's copy has changed args.k
    pack.lines_padded = round_up(pack.lines, std::max(kPackLines, first ? tile.m : tile.n));
    pack.depth_padded = round_up(pack.depth, std::max(kPackDepth, tile.k));
    const bool rounds = rounds_to_bf16(p, pipeline);
    const DType dtype = rounds ? DType::bf16 : p.problem.dtype;
    const Tensor copy = empty({static_cast<std::int64_t>(pack.batch), static_cast<std::int64_t>(pack.lines_padded),
                               static_cast<std::int64_t>(pack.depth_padded)},
                              dtype, own.device());
    pack.to = copy.address();
    const PackPlan plan = plan_pack(on, pack, p.problem.dtype);
    on.launch(rounds ? pack_bf16 : pack_copy, p.problem.dtype, plan.spec, plan.grid, pack, {own}, {copy});
    const std::int64_t matrix = std::int64_t{pack.lines_padded} * pack.depth_padded;
    const bool shared = pack.batch == 1;
    const std::int64_t inner = shared ? 0 : matrix, outer = shared ? 0 : matrix * args.batch_inner;
    if (first) {
        args.a = copy.address(), args.a_row = pack.depth_padded, args.a_col = 1;
        args.a_outer = outer, args.a_inner = inner, args.flags |= VKML_GEMM_PADDED_A;
    } else {
        args.b = copy.address(), args.b_col = pack.depth_padded, args.b_row = 1;
        args.b_outer = outer, args.b_inner = inner, args.flags |= VKML_GEMM_PADDED_B;
    }
    if (copies.a && copies.b) args.k = pack.depth_padded;
    return copy;
}

constexpr Pipeline kRest = Pipeline::coopmat_large;  // the last rows of coopmat_wide

void launch_tiles(Stream& on, const Product& p, const GemmArgs& args, Pipeline pipeline, std::uint32_t parts, bool sums,
                  const Tensor& a, const Tensor& b, const Tensor& c) {
    const int layout = args.a_col != 1 ? 2 : args.b_row == 1 ? 1 : 0;
    const bool rounds = rounds_to_bf16(p, pipeline);
    // The activation comes after the last sum.
    const auto activation = static_cast<std::uint32_t>(sums ? Activation::none : p.activation);
    const Spec spec = is_cooperative(pipeline) ? Spec{activation, sums || rounds} : Spec{activation};
    const DType dtype = rounds ? DType::bf16 : p.problem.dtype;
    GemmArgs first = args;
    if (pipeline == Pipeline::coopmat_wide && !sums && args.batch == 1 && args.k % tile_of(kRest).k == 0)
        first.m = wide_rows(args.m, args.n, cooperative().units ? cooperative().units : on.limits().compute_units).rows;
    on.launch(kernels_of(pipeline)[layout], dtype, spec, tile_grid(pipeline, first, parts * args.batch), first,
              {a, b, p.bias, c}, {c});
    if (first.m == args.m) return;
    GemmArgs rest = args;
    rest.m = args.m - first.m;
    rest.a += static_cast<Address>(first.m * args.a_row) * itemsize(dtype);
    rest.c += std::uint64_t{first.m} * args.n * itemsize(dtype);
    on.launch_rest(kernels_of(kRest)[layout], dtype, spec, tile_grid(kRest, rest, parts * args.batch), rest,
                   {a, b, p.bias}, {c});
}

void launch_parts_few(Stream& on, const Product& p, const GemmArgs& args) {
    const bool vectors = p.problem.a_along && p.problem.a_aligned && p.problem.b_aligned;
    const Kernel& kernel = parts_few[!vectors ? 2 : p.problem.b_along ? 1 : 0];
    // Rows that the kernel reads and adds: registers that one row does not need would cost it workgroups.
    const std::uint32_t rows = args.m <= 4 ? 4 : args.m <= 8 ? 8 : tile_of(Pipeline::parts_few).m;
    on.launch(kernel, DType::f32, Spec{static_cast<std::uint32_t>(p.activation), rows},
              tile_grid(Pipeline::parts_few, args, args.batch), args, {p.a, p.b, p.bias}, {p.c});
}

namespace {

/// The kernel that splits lines beside each other in one reading, or null where they are too long for it.
const Kernel* one_reading(const Limits& limits, const GemmPackArgs& pack) {
    if (pack.line != 1 || pack.k % 4 != 0 || pack.k < 0 || pack.from % 16 != 0) return nullptr;
    for (std::uint32_t i = 0; i < 3; i++) {
        const std::uint32_t threads = 256u << i;
        if (pack.depth > 4 * threads) continue;
        const bool fits = limits.max_workgroup_invocations >= threads && limits.max_workgroup_size[0] >= threads &&
                          limits.shared_memory >= 8 * (threads + 5) * sizeof(float);
        return fits ? &split_columns[i] : nullptr;
    }
    return nullptr;
}

/// An operand as lines of halves, the peak of each line, and those of parts of K where the lines are neighbours.
struct Halves {
    Tensor own, lines, peaks, partial;
    GemmPackArgs pack;
};

Halves halves_of(const Tensor& own, GemmPackArgs pack, std::uint32_t lines, std::uint32_t depth) {
    pack.batch = pack.batch_inner = 1, pack.outer = pack.inner = 0;
    pack.lines_padded = round_up(pack.lines, lines);
    pack.depth_padded = round_up(pack.depth, depth);
    const Device device = own.device();
    Halves halves{.own = own,
                  .lines = empty({std::int64_t{pack.lines_padded} * pack.depth_padded}, DType::f32, device),
                  .peaks = empty({std::int64_t{pack.lines_padded}}, DType::i32, device),
                  .partial = {},
                  .pack = pack};
    halves.pack.to = halves.lines.address(), halves.pack.peaks = halves.peaks.address();
    return halves;
}

/// Where the operand is packed along K or its lines are short, one kernel does all; else this one finds the peaks of
/// parts.
void begin_halves(Stream& on, Halves& h) {
    const Spec spec = plan_pack(on, h.pack, DType::f32).spec;
    if (reads_along(h.pack))
        return on.launch(split_lines, DType::f32, spec, linear_grid(h.pack.lines_padded), h.pack, {h.own},
                         {h.lines, h.peaks});
    if (const Kernel* kernel = one_reading(on.limits(), h.pack))
        return on.launch(*kernel, DType::f32, {}, linear_grid(h.pack.lines_padded / 8), h.pack, {h.own},
                         {h.lines, h.peaks});
    h.pack.parts = std::clamp<std::uint32_t>(h.pack.depth / 64, 1, VKML_PEAK_PARTS);
    h.partial = empty({std::int64_t{h.pack.parts} * h.pack.lines_padded}, DType::i32, h.own.device());
    h.pack.partial = h.partial.address();
    on.launch(peak, DType::f32, spec, linear_grid(std::uint64_t{h.pack.lines_padded} / kPackLines * h.pack.parts),
              h.pack, {h.own}, {h.partial});
}

void finish_halves(Stream& on, const Halves& h) {
    if (!h.partial) return;
    const PackPlan plan = plan_pack(on, h.pack, DType::f32);
    on.launch(pack_halves, DType::f32, plan.spec, plan.grid, h.pack, {h.own, h.partial}, {h.lines, h.peaks});
}

/// Short lines that can be read in vectors.
bool fits_split_both(const GemmPackArgs& pack) { return pack.depth <= 1024 && reads_vectors(pack, DType::f32); }

/// Both operands in one launch, or false where that cannot be.
bool split_in_one(Stream& on, const Halves& a, const Halves& b) {
    constexpr std::uint32_t kThreads = 256, kLines = 8;  // as in gemm_split_both.slang
    const Limits& limits = on.limits();
    if (limits.max_workgroup_invocations < kThreads || limits.max_workgroup_size[0] < kThreads ||
        limits.shared_memory < kLines * 1024 * sizeof(float) || !fits_split_both(a.pack) || !fits_split_both(b.pack))
        return false;
    const bool along_a = reads_along(a.pack), along_b = reads_along(b.pack);
    const GemmSplitBothArgs args{.from_a = a.pack.from,
                                 .from_b = b.pack.from,
                                 .to_a = a.pack.to,
                                 .to_b = b.pack.to,
                                 .peaks_a = a.pack.peaks,
                                 .peaks_b = b.pack.peaks,
                                 .step_a = along_a ? a.pack.line : a.pack.k,
                                 .step_b = along_b ? b.pack.line : b.pack.k,
                                 .lines_a = a.pack.lines,
                                 .lines_b = b.pack.lines,
                                 .padded_a = a.pack.lines_padded,
                                 .padded_b = b.pack.lines_padded,
                                 .depth = a.pack.depth,
                                 .depth_padded = a.pack.depth_padded};
    on.launch(split_both, DType::f32, Spec{along_a, along_b},
              linear_grid((std::uint64_t{args.padded_a} + args.padded_b) / kLines), args, {a.own, b.own},
              {a.lines, a.peaks, b.lines, b.peaks});
    return true;
}

}  // namespace

void launch_high(Stream& on, const Product& p, const GemmArgs& args, Pipeline pipeline) {
    const Tile tile = tile_of(pipeline);
    const Grid grid = tile_grid(pipeline, args, 1);
    for (std::uint32_t index = 0; index < args.batch; index++) {
        const std::uint32_t o = index / args.batch_inner, i = index % args.batch_inner;
        GemmArgs one = args;
        one.a += static_cast<Address>(o * args.a_outer + i * args.a_inner) * sizeof(float);
        one.b += static_cast<Address>(o * args.b_outer + i * args.b_inner) * sizeof(float);
        Halves a = halves_of(p.a, pack_args(one, true), tile.m, tile.k);
        Halves b = halves_of(p.b, pack_args(one, false), tile.n, tile.k);
        if (!split_in_one(on, a, b)) {
            // Both begin before either ends, so that there is one barrier between the two steps.
            begin_halves(on, a);
            begin_halves(on, b);
            finish_halves(on, a);
            finish_halves(on, b);
        }
        const GemmHighArgs high_args{.halves_a = a.lines.address(),
                                     .halves_b = b.lines.address(),
                                     .peaks_a = a.peaks.address(),
                                     .peaks_b = b.peaks.address(),
                                     .a = one.a,
                                     .b = one.b,
                                     .c = args.c + std::uint64_t{index} * args.m * args.n * sizeof(float),
                                     .bias = args.bias,
                                     .a_row = args.a_row,
                                     .a_col = args.a_col,
                                     .b_row = args.b_row,
                                     .b_col = args.b_col,
                                     .m = args.m,
                                     .n = args.n,
                                     .k = args.k,
                                     .depth_padded = a.pack.depth_padded};
        on.launch(pipeline == Pipeline::high ? *cooperative().high : *cooperative().high_small, DType::f32,
                  Spec{static_cast<std::uint32_t>(p.activation)}, grid, high_args,
                  {a.lines, a.peaks, b.lines, b.peaks, p.a, p.b, p.bias}, {p.c});
    }
}

}  // namespace vkml

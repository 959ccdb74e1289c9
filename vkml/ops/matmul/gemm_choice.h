#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "vkml/core/device.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/stream.h"

/// Which pipeline a product takes on a GPU: a table of gemm_choice.cpp, the first row that fits wins.
namespace vkml {

enum class Pipeline : std::uint8_t {
    gemv,
    columns,
    naive,
    tiled,
    db,
    reg,
    split_k,  // reg in parts of K, and a reduction
    large,
    medium,
    small,
    split_k_large,
    split_k_medium,
    split_k_small,
    coopmat,
    coopmat_large,
    coopmat_wide,
    coopmat_small,
    split_k_coopmat,  // coopmat in parts of K
    split_k_coopmat_small,
    high,
    high_small,
    parts,  // f32 from three bf16 parts
    parts_small,
    parts_tiny,
    parts_few,  // rows
};
inline constexpr int kPipelines = 25;
std::string_view pipeline_name(Pipeline pipeline);

/// What the choice may look at.
struct GemmProblem {
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
    DType dtype = DType::f32;
    Precision precision = Precision::highest;
    bool k_packed = false;                      // both operands have unit stride along k
    bool a_along = false, b_along = false;      // the operand has unit stride along k
    bool a_aligned = false, b_aligned = false;  // packed along one axis, lines and all else multiples of 16 bytes
    const char* no_parts = nullptr;             // why it is not computed from bf16 parts; null: it is
};

/// Extents of a workgroup's tile, and what of it a device must have.
struct Tile {
    std::uint32_t m, n, k, threads, shared;
};
/// The tile of the pipelines from large on.
Tile tile_of(Pipeline pipeline);
bool is_split(Pipeline pipeline);

/// Of m rows and n columns, the rows that tiles of coopmat_wide take where the rest in tiles of coopmat_large lets
/// `units` units of the device end together sooner; else m.
struct WideRows {
    std::uint32_t rows;
    double end;  // in times of a wide tile
};
WideRows wide_rows(std::int64_t m, std::int64_t n, std::uint32_t units);

/// Which operands a tile kernel cannot read as they lie: they are copied first, packed along K and padded to whole
/// tiles.
struct Packs {
    bool a, b;
};
Packs packs(const GemmProblem& problem, Pipeline pipeline);
bool is_cooperative(Pipeline pipeline);
/// They have an order of sums, and so bits, of their own.
bool is_parts(Pipeline pipeline);

/// Terms that are added in one chain before a sum of chains takes over, in all pipelines but gemv and the cooperative
/// ones: a multiple of 32, and the fewest chains that keep equal terms, the worst of ordinary data, inside the bound.
/// No pipeline adds in another order.
std::uint32_t gemm_chain(const GemmProblem& problem);

struct Choice {
    Pipeline pipeline;
    std::uint32_t parts = 1;            // of K
    std::uint32_t k_part = 0x80000000;  // a multiple of 32
};

Choice choose_gemm(std::string_view op, const GemmProblem& problem, Device device, const Limits& limits,
                   std::uint64_t dispatch);

/// What computes a product in the precision asked for: f32 in high or medium may be refused, and then is computed in
/// highest, for medium from operands rounded to bf16 beforehand. One entry of the decision log either way.
struct PrecisionChoice {
    Precision precision;
    bool round = false;
};
PrecisionChoice choose_precision(std::string_view op, const GemmProblem& problem, Device device, const Limits& limits,
                                 std::uint64_t dispatch);

/// Why a product in `highest` is not computed from bf16 parts, or null. It depends on N, K and the device and not on M,
/// so that a row alone has the bits of the row in its matrix.
const char* refuses_parts(const GemmProblem& problem, Stream& on);

/// Why the device has no cooperative matrices for 16-bit operands of this dtype, or null.
const char* lacks_cooperative(const Limits& limits, DType dtype);

/// Tests have put emulations in the place of kernels on cooperative matrices.
bool emulates_cooperative();

/// Notes a choice that has no alternatives (the CPU's) in the decision log.
void publish_gemm(std::string_view op, std::string_view chose, std::string_view because, std::uint64_t dispatch);

/// The pipeline asked for by name, through force_gemm or the environment; -1 when the choice is free.
int forced_pipeline();
bool is_forced_for_tests();
/// What the environment says of gemv and split K.
bool gemv_is_off();
bool split_k_is_off();
/// Products from bf16 parts: on any device with the matrices, or never.
bool parts_are_forced();
bool parts_are_off();
std::uint32_t forced_splits();

/// The winner that `python -m vkml tune` stored for this device and class of shapes, or -1.
int tuned_pipeline(const GemmProblem& problem, Device device);

}  // namespace vkml

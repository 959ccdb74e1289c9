#pragma once
#include <cstdint>

#include "vkml/ops/reduce/arg.spv.h"
#include "vkml/ops/reduce/exact.spv.h"
#include "vkml/ops/reduce/logsumexp.spv.h"
#include "vkml/ops/reduce/moments.spv.h"
#include "vkml/ops/reduce/plain.spv.h"
#include "vkml/ops/reduce/structure.h"

/// The folds and their kernels. kOp and kFinish are specialization constants of the .slang beside each.
namespace vkml {

/// The two CPU functions of a fold that is compiled once per instruction set as fold(args, dtype, spec, columns).
#define VKML_REDUCE_ENTRIES(fold)                                                              \
    HWY_EXPORT(fold);                                                                          \
    void fold##_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid) {              \
        HWY_DYNAMIC_DISPATCH(fold)(*static_cast<const ReduceArgs*>(args), dtype, spec, false); \
    }                                                                                          \
    void fold##_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid) {           \
        HWY_DYNAMIC_DISPATCH(fold)(*static_cast<const ReduceArgs*>(args), dtype, spec, true);  \
    }

/// Folds whose state is one number. kOp of plain.slang.
enum class Plain : std::uint32_t { sum, product, largest, smallest, squares, magnitudes };
/// What becomes of that number: as it is, divided by Fold::divisor, or its square root.
enum class PlainFinish : std::uint32_t { none, divide, root };

void plain_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void plain_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
inline constexpr Kernel plain_rows{"reduce_rows", spv::plain_rows, plain_rows_cpu};
inline constexpr Kernel plain_columns{"reduce_columns", spv::plain_columns, plain_columns_cpu};

/// The largest (kOp 0) or smallest (1) element and its first position; kFinish 1 leaves the values out.
void arg_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void arg_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
inline constexpr Kernel arg_rows{"reduce_rows", spv::arg_rows, arg_rows_cpu};
inline constexpr Kernel arg_columns{"reduce_columns", spv::arg_columns, arg_columns_cpu};
inline constexpr std::size_t kArgState = 16;

/// Sum of squared deviations divided by Fold::divisor; kFinish 1 takes the root.
void moments_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void moments_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
inline constexpr Kernel moments_rows{"reduce_rows", spv::moments_rows, moments_rows_cpu};
inline constexpr Kernel moments_columns{"reduce_columns", spv::moments_columns, moments_columns_cpu};

void logsumexp_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void logsumexp_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
inline constexpr Kernel logsumexp_rows{"reduce_rows", spv::logsumexp_rows, logsumexp_rows_cpu};
inline constexpr Kernel logsumexp_columns{"reduce_columns", spv::logsumexp_columns, logsumexp_columns_cpu};

/// Sums in blocks of 32 and a pairwise tree, the same bits everywhere. kFinish 1 divides, correctly rounded.
void exact_sum_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
inline constexpr Kernel exact_sum{"exact_sum", spv::exact_sum, exact_sum_cpu};

}  // namespace vkml

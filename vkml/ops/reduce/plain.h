#pragma once
#include <cstdint>

#include "vkml/ops/reduce/plain.spv.h"
#include "vkml/ops/reduce/structure.h"

/// Reductions whose state is one number.
namespace vkml {

/// Specialization constant kOp of plain.slang.
enum class Plain : std::uint32_t { sum, product, largest, smallest, squares, magnitudes };
/// Specialization constant kFinish: the folded number itself, divided by `divisor`, or its square root.
enum class PlainFinish : std::uint32_t { none, divide, root };

void plain_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void plain_columns_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel plain_rows{"reduce_rows", spv::plain_rows, plain_rows_cpu};
inline constexpr Kernel plain_columns{"reduce_columns", spv::plain_columns, plain_columns_cpu};

}  // namespace vkml

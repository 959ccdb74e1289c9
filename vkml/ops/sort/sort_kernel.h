#pragma once
#include "vkml/ops/sort/sort.spv.h"
#include "vkml/ops/sort/sort_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

/// The longest row that one workgroup sorts in shared memory.
inline constexpr std::int64_t kLongestRow = 1024;

void sort_rows_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);  // any length

inline constexpr Kernel sort_rows_kernel{"sort_rows", spv::sort_rows, sort_rows_cpu};
inline constexpr Kernel sort_keys_kernel{"sort_keys", spv::sort_keys};
inline constexpr Kernel sort_row_numbers_kernel{"sort_row_numbers", spv::sort_row_numbers};
inline constexpr Kernel sort_indices_kernel{"sort_indices", spv::sort_indices};
static_assert(sizeof(SortArgs) <= kMaxPushConstants);

}  // namespace vkml

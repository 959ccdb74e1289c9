#pragma once
#include "vkml/ops/copy/copy.spv.h"
#include "vkml/ops/copy/copy_args.h"
#include "vkml/ops/copy/copy_packed.spv.h"
#include "vkml/ops/copy/copy_packed_args.h"
#include "vkml/ops/copy/copy_transposed.spv.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void copy_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void copy_packed_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel copy_kernel{"copy_strided", spv::copy_strided, copy_cpu};
inline constexpr Kernel copy_wide_kernel{"copy_strided", spv::copy_strided_wide, copy_cpu};
inline constexpr Kernel copy_transposed_kernel{"copy_transposed", spv::copy_transposed, copy_cpu};
inline constexpr Kernel copy_transposed_pairs_kernel{"copy_transposed_pairs", spv::copy_transposed_pairs, copy_cpu};
inline constexpr Kernel copy_packed_kernel{"copy_packed", spv::copy_packed, copy_packed_cpu};

/// Elements that are only moved are told apart by their size: u8, i16, i32 or i64.
constexpr DType storage_dtype(std::size_t item) {
    return item == 1 ? DType::u8 : item == 2 ? DType::i16 : item == 4 ? DType::i32 : DType::i64;
}

static_assert(sizeof(CopyArgs) <= kMaxPushConstants);

}  // namespace vkml

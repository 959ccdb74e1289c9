#pragma once
#include "vkml/ops/index/keys.spv.h"
#include "vkml/ops/index/keys_args.h"
#include "vkml/ops/index/segment.spv.h"
#include "vkml/ops/index/segment_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void index_keys_i64_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void index_keys_i32_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void segment_starts_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void segment_add_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
/// output[starts[j]] += source[j] for ascending j, where starts[j] < rows: `starts` holds keys here.
void scatter_in_order_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel index_keys_i64_kernel{"index_keys", spv::index_keys_i64, index_keys_i64_cpu};
inline constexpr Kernel index_keys_i32_kernel{"index_keys", spv::index_keys_i32, index_keys_i32_cpu};
inline constexpr Kernel segment_starts_kernel{"segment_starts", spv::segment_starts, segment_starts_cpu};
inline constexpr Kernel segment_add_kernel{"segment_add", spv::segment_add, segment_add_cpu};
inline constexpr Kernel scatter_in_order_kernel{"scatter_in_order", {}, scatter_in_order_cpu};
static_assert(sizeof(KeysArgs) <= kMaxPushConstants && sizeof(SegmentArgs) <= kMaxPushConstants);

}  // namespace vkml

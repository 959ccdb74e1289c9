#pragma once
#include "vkml/ops/arange/arange.spv.h"
#include "vkml/ops/arange/arange_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void arange_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel arange_kernel{"arange", spv::arange, arange_cpu};
inline constexpr Kernel arange_float_kernel{"arange_float", spv::arange_float, arange_cpu};
static_assert(sizeof(ArangeArgs) <= kMaxPushConstants);

}  // namespace vkml

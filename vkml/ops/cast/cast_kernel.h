#pragma once
#include "vkml/ops/cast/cast.spv.h"
#include "vkml/ops/cast/cast_args.h"
#include "vkml/ops/cast/cast_wide.spv.h"
#include "vkml/ops/cast/cast_wide_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void cast_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void cast_wide_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

// Modules that write f64 need it of the device, so they stand apart.
inline constexpr Kernel cast_kernel{"cast", spv::cast, cast_cpu};
inline constexpr Kernel cast_to_f64_kernel{"cast", spv::cast_to_f64, cast_cpu};
inline constexpr Kernel cast_wide_kernel{"cast_wide", spv::cast_wide, cast_wide_cpu};

static_assert(sizeof(CastArgs) <= kMaxPushConstants);

}  // namespace vkml

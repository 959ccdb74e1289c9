#pragma once
#include "vkml/ops/multi_tensor/multi_norm.spv.h"
#include "vkml/ops/multi_tensor/multi_tensor.spv.h"
#include "vkml/ops/multi_tensor/multi_tensor_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void multi_squares_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multi_norm_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multi_scale_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multi_lerp_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel multi_squares_kernel{"multi_squares", spv::multi_squares, multi_squares_cpu};
inline constexpr Kernel multi_norm_kernel{"multi_norm", spv::multi_norm, multi_norm_cpu};
inline constexpr Kernel multi_scale_kernel{"multi_scale", spv::multi_scale, multi_scale_cpu};
inline constexpr Kernel multi_lerp_kernel{"multi_lerp", spv::multi_lerp, multi_lerp_cpu};

}  // namespace vkml

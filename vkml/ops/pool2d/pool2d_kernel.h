#pragma once
#include "vkml/ops/pool2d/pool2d.spv.h"
#include "vkml/ops/pool2d/pool2d_args.h"
#include "vkml/ops/pool2d/pool2d_backward.spv.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

inline constexpr std::uint32_t kRealElements = 0x80000000u;  // Pool2dArgs::divisor: the elements inside the image

void max_pool2d_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void avg_pool2d_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void max_pool2d_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void avg_pool2d_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel max_pool2d_kernel{"max_pool2d", spv::max_pool2d, max_pool2d_cpu};
inline constexpr Kernel avg_pool2d_kernel{"avg_pool2d", spv::avg_pool2d, avg_pool2d_cpu};
inline constexpr Kernel max_pool2d_backward_kernel{"max_pool2d_backward", spv::max_pool2d_backward,
                                                   max_pool2d_backward_cpu};
inline constexpr Kernel avg_pool2d_backward_kernel{"avg_pool2d_backward", spv::avg_pool2d_backward,
                                                   avg_pool2d_backward_cpu};

static_assert(sizeof(Pool2dArgs) <= kMaxPushConstants);
static_assert(sizeof(Pool2dBackwardArgs) <= kMaxPushConstants);

}  // namespace vkml

#pragma once
#include "vkml/ops/im2col/im2col.spv.h"
#include "vkml/ops/im2col/im2col_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void im2col_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void col2im_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel im2col_kernel{"im2col", spv::im2col, im2col_cpu};
inline constexpr Kernel col2im_kernel{"col2im", spv::col2im, col2im_cpu};

static_assert(sizeof(Im2colArgs) <= kMaxPushConstants);

}  // namespace vkml

#pragma once
#include "vkml/ops/dropout/dropout.spv.h"
#include "vkml/ops/dropout/dropout_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void dropout_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel dropout_kernel{"dropout", spv::dropout, dropout_cpu};
static_assert(sizeof(DropoutArgs) <= kMaxPushConstants);

}  // namespace vkml

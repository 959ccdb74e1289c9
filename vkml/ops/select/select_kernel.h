#pragma once
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/select/select.spv.h"
#include "vkml/ops/select/select_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void select_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel select_kernel{"select_where", spv::select_where, select_cpu};

static_assert(sizeof(SelectArgs) <= kMaxPushConstants);

}  // namespace vkml

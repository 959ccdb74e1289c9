#pragma once
#include "vkml/ops/optim/optim.spv.h"
#include "vkml/ops/optim/optim_advance.spv.h"
#include "vkml/ops/optim/optim_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void optim_step_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void optim_advance_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel optim_step_kernel{"optim_step", spv::optim_step, optim_step_cpu};
inline constexpr Kernel optim_advance_kernel{"optim_advance", spv::optim_advance, optim_advance_cpu};

}  // namespace vkml

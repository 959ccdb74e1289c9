#pragma once
#include "vkml/ops/recurrent/recurrent.spv.h"
#include "vkml/ops/recurrent/recurrent_args.h"
#include "vkml/ops/recurrent/recurrent_backward.spv.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void recurrent_step_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void recurrent_step_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// Specialised by: threads, RecurrentCell, and backward whether this is the last step, where nothing is carried yet.
inline constexpr Kernel recurrent_step_kernel{"recurrent_step", spv::recurrent_step, recurrent_step_cpu};
inline constexpr Kernel recurrent_step_backward_kernel{"recurrent_step_backward", spv::recurrent_step_backward,
                                                       recurrent_step_backward_cpu};
static_assert(sizeof(RecurrentArgs) <= kMaxPushConstants && sizeof(RecurrentBackwardArgs) <= kMaxPushConstants);

}  // namespace vkml

#pragma once
#include "vkml/ops/losses/nll_args.h"
#include "vkml/runtime/kernel.h"

/// CPU forms of nll.slang. spec[0]: input holds logits.
namespace vkml {

void nll_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void nll_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

}  // namespace vkml

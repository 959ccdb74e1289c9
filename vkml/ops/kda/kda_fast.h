#pragma once
#include "vkml/ops/kda/kda_internal.h"

namespace vkml::kda {

/// The forward with cooperative matrices and bf16 operands. False, with nothing done, where these kernels do not fit;
/// the table kda.fast says why.
bool run_forward_fast(std::string_view op, const Problem& p, const Inputs& in, const KdaOutput& out,
                      std::int64_t spacing);

}  // namespace vkml::kda

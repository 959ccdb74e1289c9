#pragma once
#include "vkml/ops/matmul/gemm_args.h"
#include "vkml/ops/matmul/precision.h"
#include "vkml/runtime/kernel.h"

/// The CPU forms of the product. Spec: {precision is exact}.
namespace vkml {

static_assert(sizeof(GemmArgs) <= kMaxPushConstants);

/// oneDNN where it keeps the order of the sums whatever the number of rows, else the blocked kernel.
void gemm_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// Packed tiles and FMA, sums in blocks of 64: f32, f64, and 16-bit floats widened on the way.
void gemm_blocked_cpu(const GemmArgs& args, DType dtype);
/// The order of `exact`.
void gemm_exact_cpu(const GemmArgs& args, DType dtype);
void gemm_integer_cpu(const GemmArgs& args, DType dtype);

}  // namespace vkml

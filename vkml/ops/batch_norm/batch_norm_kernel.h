#pragma once
#include "vkml/core/tensor.h"
#include "vkml/ops/batch_norm/batch_norm.spv.h"
#include "vkml/ops/batch_norm/batch_norm_args.h"
#include "vkml/ops/batch_norm/batch_norm_fold.spv.h"
#include "vkml/runtime/kernel.h"

/// The fused forms of batch_norm. Channel tensors are packed and in the dtype computed with; on the GPU weight and bias
/// may both be of the input's dtype instead.
namespace vkml {

void batch_norm_apply_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void batch_norm_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void batch_norm_statistics_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void batch_norm_sums_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void batch_norm_fold_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// Statistics of a batch: mean and variance for the caller, and what the kernels go on with.
struct BatchStatistics {
    Tensor mean, variance;
    Tensor relative, rstd;  // the mean relative to the channel's first element
};
/// False for tensors whose elements 31 bits do not count.
bool batch_norm_fits(const Tensor& x);
BatchStatistics batch_norm_statistics(const Tensor& x, double eps);

/// (x - mean) rstd weight + bias; the mean relative to the channel's first element where `relative`.
Tensor batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                        const Tensor& bias, bool relative);
/// (2, C): sums of g and of g xhat over each channel.
Tensor batch_norm_sums(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd, bool relative);
/// The gradient of x: through the batch's statistics where `sums` is defined.
Tensor batch_norm_backward(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                           const Tensor& weight, const Tensor& sums);

static_assert(sizeof(BatchNormArgs) <= kMaxPushConstants);
static_assert(sizeof(BatchNormFoldArgs) <= kMaxPushConstants);

}  // namespace vkml

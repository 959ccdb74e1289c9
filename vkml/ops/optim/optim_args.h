#pragma once
#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One step over many tensors, a pass as MultiTensorArgs describes it.
struct OptimArgs {
    VKML_PTR(uint64_t) table;   // addresses of parameter, gradient, three states, progress
    VKML_PTR(T.Value) numbers;  // kOptim* below
    VKML_PTR(uint) skip;        // not 0: there is no step; the address may be 0
    uint32_t entries;
    uint32_t groups;
};

/// Counts the step of every tensor in the table; one invocation each.
struct OptimAdvanceArgs {
    VKML_PTR(uint64_t) table;
    VKML_PTR(T.Value) numbers;
    VKML_PTR(uint) skip;
    uint32_t entries;
};

static const uint32_t kOptimProgressAt = 5;  // which address of a table entry

/// What `numbers` holds; the host writes it.
static const uint32_t kOptimRate = 0, kOptimDecay = 1, kOptimBeta1 = 2, kOptimRest1 = 3, kOptimBeta2 = 4,
                      kOptimRest2 = 5, kOptimEps = 6, kOptimDamping = 7, kOptimNumbers = 8;

/// What a parameter's progress holds: 1 - beta^steps of both betas, and the steps it has made. Nadam keeps the product
/// of its momenta for the first correction, and the shares of gradient and mean in this step.
static const uint32_t kOptimCorrection1 = 0, kOptimCorrection2 = 1, kOptimSteps = 2, kOptimGradientShare = 3,
                      kOptimMeanShare = 4, kOptimProgress = 5;

/// The rule, a specialization constant.
static const uint32_t kOptimSgd = 0, kOptimAdam = 1, kOptimAdamW = 2, kOptimRmsProp = 3, kOptimLion = 4,
                      kOptimAdagrad = 5, kOptimNadam = 6;

}  // namespace vkml

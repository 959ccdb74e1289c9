#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One step over many tensors: workgroup g works on the table entry whose groups contain g.
struct OptimArgs {
    VKML_PTR(uint64_t)
    table;  // entries of kOptimWords words: addresses of parameter, gradient, three states; count; first group
    VKML_PTR(T.Value) numbers;  // kOptim* below
    uint32_t entries;
    uint32_t groups;
};

/// Advances the bias corrections before a step; one thread.
struct OptimAdvanceArgs {
    VKML_PTR(T.Value) numbers;
};

static const uint32_t kOptimWords = 8;
static const uint32_t kOptimGroupElements = 1024;  // elements of one workgroup

/// What `numbers` holds. The host writes the first seven; the device keeps the others.
static const uint32_t kOptimRate = 0, kOptimDecay = 1, kOptimBeta1 = 2, kOptimRest1 = 3, kOptimBeta2 = 4,
                      kOptimRest2 = 5, kOptimEps = 6, kOptimCorrection1 = 7, kOptimCorrection2 = 8, kOptimSteps = 9,
                      kOptimNumbers = 10;

/// The rule, a specialization constant.
static const uint32_t kOptimSgd = 0, kOptimAdam = 1, kOptimAdamW = 2, kOptimRmsProp = 3, kOptimLion = 4;

}  // namespace vkml

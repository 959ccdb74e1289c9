#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Packed rows of `columns` weights, read by their bits.
struct MultinomialArgs {
    VKML_PTR(uint) weights;
    VKML_PTR(uint) largest;    // shares: one weight a row
    VKML_PTR(int64_t) sums;    // pick: the running sums of the shares; check: the keys that were taken
    VKML_PTR(int64_t) output;  // shares, keys or samples
    VKML_PTR(uint) fault;
    uint64_t seed, offset;
    uint64_t count;  // of the output; of rows: check
    uint32_t columns, samples;
    uint32_t shift;  // of shares
    uint32_t site;
};

}  // namespace vkml

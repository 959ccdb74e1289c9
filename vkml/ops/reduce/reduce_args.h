#include "vkml/runtime/slang/args.h"

namespace vkml {

/// What every reduction kernel is told. Kept axes come first in `strides` and `sizes`, then the reduced ones, each
/// outermost first; how many there are of either is a specialization constant.
struct ReduceArgs {
    VKML_PTR(uint8_t) x;      // elements, or the states a first pass left
    VKML_PTR(uint8_t) y;      // results, or states for a second pass
    VKML_PTR(int64_t) index;  // positions, where the fold has any
    int64_t strides[6];       // in elements
    uint32_t sizes[6];
    uint64_t kept;        // results
    uint64_t reduced;     // elements (or states) behind each result
    uint32_t span;        // of them, how many one part folds
    uint32_t parts;       // parts per result; more than one leave states
    uint32_t divisor[2];  // bits of a number in the accumulator's type: what a mean or a variance divides by
};

}  // namespace vkml

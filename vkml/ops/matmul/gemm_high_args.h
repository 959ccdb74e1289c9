#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One f32 product from operands split into halves: lines of (hi 32, lo 32) pairs, padded to whole tiles. `a` and `b`
/// are the operands as they were, for lines that hold infinities or NaN.
struct GemmHighArgs {
    VKML_PTR(uint4) halves_a;
    VKML_PTR(uint4) halves_b;
    VKML_PTR(uint) peaks_a;
    VKML_PTR(uint) peaks_b;
    VKML_PTR(float) a;
    VKML_PTR(float) b;
    VKML_PTR(float) c;
    VKML_PTR(float) bias;  // null: none
    int64_t a_row, a_col, b_row, b_col;
    uint32_t m, n, k, depth_padded;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Both operands of an f32 product, as in GemmPackArgs. `step` is the distance between lines where they are packed
/// along k, and between terms where lines are neighbours.
struct GemmSplitBothArgs {
    VKML_PTR(uint) from_a;
    VKML_PTR(uint) from_b;
    VKML_PTR(uint4) to_a;
    VKML_PTR(uint4) to_b;
    VKML_PTR(uint) peaks_a;
    VKML_PTR(uint) peaks_b;
    int64_t step_a, step_b;
    uint32_t lines_a, lines_b, padded_a, padded_b, depth, depth_padded;
};

}  // namespace vkml

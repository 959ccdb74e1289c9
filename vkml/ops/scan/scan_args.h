#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Up to three kept axes, outermost first, and last the scanned one, whose strides may be negative.
struct ScanArgs {
    VKML_PTR(uint8_t) x;
    VKML_PTR(uint8_t) y;
    VKML_PTR(uint8_t) carry;  // running sums of the parts before, one per row and part; 0 without any
    uint64_t kept;            // rows
    int64_t x_strides[4];     // in elements
    int64_t y_strides[4];
    uint32_t sizes[3];  // of the kept axes
    uint32_t length;    // elements along the scanned axis
    uint32_t span;      // of them, how many one part takes
    uint32_t parts;     // per row
};

}  // namespace vkml

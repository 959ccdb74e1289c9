#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Rows of `length` along the middle axis of (outer, length, inners); row number = outer * inners + inner.
struct SortArgs {
    VKML_PTR(RAW) input;
    VKML_PTR(int64_t) indices;  // packed (outer, length, inners)
    VKML_PTR(KEY) keys;         // packed (row, length), radix path only
    VKML_PTR(uint) positions;   // row * length + place
    int64_t outer_stride, row_stride, inner_stride;
    uint32_t rows, length, inners;
};

}  // namespace vkml

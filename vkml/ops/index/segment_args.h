#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[p, d, q] += source[p, order[k], q] for k = starts[d] .. starts[d + 1] - 1, in that order; output packed.
struct SegmentArgs {
    VKML_PTR(T.Storage) source;
    VKML_PTR(T.Storage) output;
    VKML_PTR(uint) starts;
    VKML_PTR(uint) order;
    int64_t outer_stride, row_stride, inner_stride;  // of the source
    uint64_t count;
    uint32_t rows, inner;  // of the output
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[p, r, q] = input[p, index[r], q]; output packed, input with one stride per axis. Zeros where the index is
/// `skip`. Units of the last axis are elements, or 16 bytes in the wide kernel.
struct SelectArgs {
    VKML_PTR(T.Storage) input;
    VKML_PTR(T.Storage) output;
    VKML_PTR(INDEX) index;
    VKML_PTR(uint) fault;
    int64_t outer_stride, row_stride, inner_stride, index_stride;
    int64_t extent;  // of the indexed axis
    int64_t skip;    // none below -1
    uint64_t count;
    uint32_t rows, inner;
    uint32_t site;
};

}  // namespace vkml

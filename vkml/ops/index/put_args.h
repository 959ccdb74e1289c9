#include "vkml/runtime/slang/args.h"

namespace vkml {

/// target[p, index[r], q] = source[p, r, q]; where rows repeat, the last one wins. index -1: nothing.
struct PutArgs {
    VKML_PTR(T.Storage) source;
    VKML_PTR(T.Storage) target;
    VKML_PTR(int64_t) index;  // packed, checked
    VKML_PTR(uint) winner;    // of a target row: its last source row, plus 1; starts as 0
    int64_t source_strides[3], target_strides[3];
    uint64_t count;
    uint32_t rows, inner;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Matrices in packed order; a batch of at most three strided axes.
struct TriArgs {
    VKML_PTR(T.Storage) input;
    VKML_PTR(T.Storage) output;
    int64_t strides[3];  // of the batch, outermost first
    int64_t row_stride, column_stride;
    int64_t diagonal;
    uint64_t matrices;
    uint32_t sizes[3];
    uint32_t rows, columns;
};

}  // namespace vkml

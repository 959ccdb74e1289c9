#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[j] = input[j, with the coordinate along dim replaced by index[j]]; index and output packed. The input's
/// stride along dim is `dim_stride`, and 0 in `strides`.
struct GatherArgs {
    VKML_PTR(T.Storage) input;
    VKML_PTR(T.Storage) output;
    VKML_PTR(INDEX) index;
    VKML_PTR(uint) fault;
    int64_t strides[5];  // outermost first
    int64_t dim_stride;
    int64_t extent;
    uint32_t sizes[5];
    uint32_t count, site;
};

}  // namespace vkml

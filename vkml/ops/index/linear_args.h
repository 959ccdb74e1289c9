#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[j] = (output[j] or 0) * extent + index[j], negative indices wrapped; -1 once an index was out of range.
/// Output packed.
struct LinearArgs {
    VKML_PTR(INDEX) index;
    VKML_PTR(int64_t) output;
    VKML_PTR(uint) fault;
    int64_t strides[5];  // outermost first
    int64_t extent;
    uint32_t sizes[5];
    uint32_t count, site;
};

}  // namespace vkml

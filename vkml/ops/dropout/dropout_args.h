#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Strided input, packed output; sizes[0] is not needed to find an element, so it may be any.
struct DropoutArgs {
    VKML_PTR(T.Storage) input;
    VKML_PTR(T.Storage) output;
    uint64_t seed, offset;
    uint64_t first;  // counter of element 0
    uint64_t count;
    int64_t strides[6];  // outermost first, in elements
    uint32_t sizes[6];
    uint32_t threshold;  // kept iff (word0 >> 8) >= threshold
    float scale;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[j] = input[j] over one shape, each side with strides of its own. Units are elements, or 16 bytes in the wide
/// kernel.
struct MoveArgs {
    VKML_PTR(T.Storage) input;
    VKML_PTR(T.Storage) output;
    int64_t from[5];  // outermost first, never negative
    int64_t to[5];
    uint32_t sizes[5];
    uint32_t count;
    uint32_t reversed;  // bit i: axis i of the input is read from its end
};

}  // namespace vkml

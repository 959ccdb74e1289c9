#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[i] = in[offset of i] as another type; the output is packed.
struct CastArgs {
    VKML_PTR(T.Storage) in;
    VKML_PTR(uint8_t) out;
    uint64_t count;
    int64_t strides[6];  // outermost first, in elements
    uint32_t sizes[6];
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[i] = in[i] as another floating-point type; both packed, `in` aligned to 16 bytes.
struct CastWideArgs {
    VKML_PTR(T.Storage) in;
    VKML_PTR(uint8_t) out;
    uint64_t count;
};

}  // namespace vkml

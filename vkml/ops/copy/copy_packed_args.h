#include "vkml/runtime/slang/args.h"

namespace vkml {

/// target[i] = source[i] in pieces of 16 bytes, both sides aligned to them.
struct CopyPackedArgs {
    VKML_PTR(uint4) source;
    VKML_PTR(uint4) target;
    uint64_t vectors;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// target[i] = the low bytes of `pattern`; packed.
struct FillArgs {
    VKML_PTR(T.Storage) target;
    uint64_t count;
    uint64_t pattern;
};

}  // namespace vkml

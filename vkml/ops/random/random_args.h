#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[i] = element i of the draw; packed.
struct RandomArgs {
    VKML_PTR(T.Storage) output;
    uint64_t count;
    uint64_t seed, offset;
    int64_t low;     // randint only
    uint64_t range;  // high - low
};

}  // namespace vkml

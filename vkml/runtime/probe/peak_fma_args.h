#include "vkml/runtime/slang/args.h"

namespace vkml {

/// target[thread] = the sum of chains x = x * scale + shift, so that no compiler can drop them.
struct PeakFmaArgs {
    VKML_PTR(T.Storage) target;
    float scale, shift;
};

}  // namespace vkml

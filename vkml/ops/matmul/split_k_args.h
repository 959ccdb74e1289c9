#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Partial sums (part, batch, m, n) in f32, packed, to c (batch, m, n). With `carry` the sum starts from there, and
/// unless `last` it ends there.
struct SplitKArgs {
    VKML_PTR(float) partial;
    VKML_PTR(float) carry;
    VKML_PTR(T.Storage) c;
    VKML_PTR(T.Storage) bias;  // null: none
    uint64_t count;            // batch * m * n
    uint32_t n, parts;
    uint32_t first, last;  // of several rounds
};

}  // namespace vkml

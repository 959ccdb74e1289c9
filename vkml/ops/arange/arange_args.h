#include "vkml/runtime/slang/args.h"

namespace vkml {

/// output[i] = start + i step for i < turn, else stop - (count - 1 - i) step. Numbers are the bits of a Number (int64
/// or f64).
struct ArangeArgs {
    VKML_PTR(T.Storage) output;
    uint64_t count, turn;
    uint64_t start, stop, step;
};

}  // namespace vkml

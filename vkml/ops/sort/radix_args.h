#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One digit of a radix sort. `counts` is digit-major: counts[digit * tiles + tile].
struct RadixArgs {
    VKML_PTR(T.Storage) keys;
    VKML_PTR(T.Storage) sorted_keys;
    VKML_PTR(uint) values;
    VKML_PTR(uint) sorted_values;
    VKML_PTR(uint) counts;
    uint32_t count, tiles;
    uint32_t begin, end;  // bits of the digit
};

}  // namespace vkml

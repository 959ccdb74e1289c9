#include "vkml/runtime/slang/args.h"

namespace vkml {

/// A packed side and a strided side of one shape; which of them is the target is a specialization constant.
struct CopyArgs {
    VKML_PTR(T.Storage) packed;
    VKML_PTR(T.Storage) strided;
    int64_t strides[8];  // outermost first, in elements
    uint32_t sizes[8];
    uint32_t count;  // elements
};

}  // namespace vkml

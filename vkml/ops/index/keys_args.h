#include "vkml/runtime/slang/args.h"

namespace vkml {

/// keys[j] = the packed target element (or row) of source j, positions[j] = j. `sentinel` where the index is `skip` or
/// out of range. The index is packed; the target's stride along dim is `dim_stride`, and 0 in `strides`.
struct KeysArgs {
    VKML_PTR(INDEX) index;
    VKML_PTR(uint) keys;
    VKML_PTR(uint) positions;
    VKML_PTR(uint) fault;
    int64_t extent;
    int64_t skip;         // none below -1
    uint32_t strides[8];  // outermost first
    uint32_t sizes[8];
    uint32_t dim_stride;
    uint32_t count, sentinel, site;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[i] = f(a[i], b[i]) over a packed output; operands are packed, strided or a number, as the specialization
/// constants say.
struct ElementwiseArgs {
    VKML_PTR(T.Storage) a;
    VKML_PTR(T.Storage) b;
    VKML_PTR(OUT.Storage) out;
    uint64_t count;
    uint64_t p;            // bits of a number in the kernel's value type: an operand, or a parameter
    uint64_t q;            // a second parameter; for integer division the address of the fault record
    uint32_t sizes[6];     // of the collapsed axes, outermost first
    int32_t a_strides[6];  // in elements
    int32_t b_strides[6];
    uint32_t site;  // for the fault record
    uint32_t spare;
};

}  // namespace vkml

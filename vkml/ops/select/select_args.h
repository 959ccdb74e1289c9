#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[i] = cond[i] ? a[i] : b[i], by the bytes; all strided but the output. An operand without address is a number.
struct SelectArgs {
    VKML_PTR(uint8_t) cond;
    VKML_PTR(T.Storage) a;
    VKML_PTR(T.Storage) b;
    VKML_PTR(T.Storage) out;
    uint32_t a_bits[2];
    uint32_t b_bits[2];
    uint32_t sizes[4];  // of the collapsed axes, outermost first
    int32_t cond_strides[4];
    int32_t a_strides[4];
    int32_t b_strides[4];
    uint32_t count;
    uint32_t spare;
};

}  // namespace vkml

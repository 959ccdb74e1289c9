#pragma once
#include "vkml/runtime/slang/args.h"

namespace vkml {

/// One pass over many tensors. `table` holds kTableWords words per tensor: up to six addresses, the element count, the
/// first workgroup. Workgroup g works on the entry whose workgroups contain g.
struct MultiTensorArgs {
    VKML_PTR(uint64_t) table;
    VKML_PTR(T.Value) factor;  // multi_scale: what to multiply by; multi_lerp: the weight
    VKML_PTR(T.Value) sums;    // multi_squares: one sum per workgroup
    VKML_PTR(uint) found;      // multi_scale: becomes 1 at an element that is not finite; 0: nobody asks
    uint32_t entries;
    uint32_t groups;
};

/// norm[0] = sqrt of the sum of `count` sums; one workgroup.
struct MultiNormArgs {
    VKML_PTR(T.Value) sums;
    VKML_PTR(T.Value) norm;
    uint64_t count;
};

static const uint32_t kTableWords = 8;
static const uint32_t kTableCount = 6, kTableFirstGroup = 7;
static const uint32_t kTableGroupElements = 4096;  // elements of one workgroup

}  // namespace vkml

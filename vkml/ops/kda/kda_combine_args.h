// Arguments of kda_combine.
#pragma once
#include "vkml/runtime/slang/args.h"

namespace vkml {

struct KdaCombineArgs {
    VKML_PTR(float) maps;      // [heads of the slab][segments - 1][kp][kp] M, then [kp][vp] b: S' = M S + b
    VKML_PTR(float) state_in;  // before the first segment; null: zeros
    VKML_PTR(float) states;    // [heads of the slab][segments][K][V]
    uint32_t s_b, s_h, s_k, s_v;
    uint32_t widths, heads_packed, head0, segments;
};

}  // namespace vkml

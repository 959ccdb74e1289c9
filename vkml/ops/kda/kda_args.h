// Arguments of the KDA kernels and the layout of their workspace. T is how query, key, value and output lie in memory;
// float stands for double where they are. Strides are in elements; the innermost ones are specialization constants.
// widths: K - 1 in 8 bits, V - 1 in 8, tiles of the slab - 1 in 15, "keep what the backward needs" in 1. heads_packed:
// HV - 1 and HV / H - 1 in 16 bits each. The CPU takes any K, V and heads, from the specialization constants of
// KdaSpec.
#pragma once
#include "vkml/runtime/slang/args.h"

#ifdef __cplusplus
#define KDA_FUNCTION inline
#else
#define KDA_FUNCTION
#endif

namespace vkml {

struct KdaPrepareArgs {
    VKML_PTR(T.Storage) query;
    VKML_PTR(T.Storage) key;
    VKML_PTR(T.Storage) value;
    VKML_PTR(float) log_decay;
    VKML_PTR(float) beta;
    VKML_PTR(float) workspace;
    uint32_t q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, g_b, g_h, g_t, b_b, b_h, b_t;
    float scale;
    uint32_t left, widths, heads_packed, head0;  // left: tokens from the slab's first on, where the pointers begin
};

struct KdaScanArgs {
    VKML_PTR(float) workspace;
    VKML_PTR(float) state_in;    // null: zeros
    VKML_PTR(float) state_out;   // packed [B * HV, K, V]
    VKML_PTR(T.Storage) output;  // null: not wanted
    VKML_PTR(float) boundaries;  // null: not wanted
    uint32_t s_b, s_h, s_k, s_v;
    uint32_t tokens, tile0, widths, heads_packed, head0, heads;  // heads: B * HV
    uint32_t spacing;                                            // tiles between boundaries
};

struct KdaFastScanArgs {
    VKML_PTR(float) workspace;
    VKML_PTR(T.Storage) value;
    VKML_PTR(float) state;  // packed; before the slab, then after it
    VKML_PTR(T.Storage) output;
    VKML_PTR(float) boundaries;  // null: not wanted
    uint32_t v_b, v_h, v_t;
    uint32_t tokens, tile0, widths, heads_packed, head0, heads;  // heads: B * HV
    uint32_t spacing;                                            // tiles between boundaries
};

struct KdaBoundaryArgs {
    VKML_PTR(float) workspace;
    VKML_PTR(float) boundaries;
    VKML_PTR(T.Storage) key;
    VKML_PTR(float) log_decay;
    uint32_t k_b, k_h, k_t, g_b, g_h, g_t;
    uint32_t tokens, tile0, widths, heads_packed, head0, heads;
    uint32_t spacing;  // tokens between boundaries
};

struct KdaReverseArgs {
    VKML_PTR(float) workspace;
    VKML_PTR(T.Storage) grad_output;  // null: zeros
    VKML_PTR(float) state_in;         // gradient of the state after the slab; null: zeros
    VKML_PTR(float) state_out;        // packed
    uint32_t o_b, o_h, o_t;
    uint32_t s_b, s_h, s_k, s_v;
    uint32_t tokens, tile0, widths, heads_packed, head0;
};

struct KdaEpilogueArgs {
    VKML_PTR(float) workspace;
    VKML_PTR(T.Storage) query;
    VKML_PTR(T.Storage) key;
    VKML_PTR(float) log_decay;
    VKML_PTR(T.Storage) grad_query;
    VKML_PTR(T.Storage) grad_key;
    VKML_PTR(T.Storage) grad_value;
    VKML_PTR(float) grad_log_decay;
    VKML_PTR(float) grad_beta;
    uint32_t q_b, q_h, q_t, k_b, k_h, k_t, g_b, g_h, g_t;
    uint32_t tokens, tile0, widths, heads_packed, head0;
};

struct KdaDecodeArgs {
    VKML_PTR(T.Storage) query;
    VKML_PTR(T.Storage) key;
    VKML_PTR(T.Storage) value;
    VKML_PTR(float) log_decay;
    VKML_PTR(float) beta;
    VKML_PTR(float) state;       // null: zeros
    VKML_PTR(float) state_out;   // packed
    VKML_PTR(T.Storage) output;  // packed
    uint32_t q_b, q_h, k_b, k_h, v_b, v_h, g_b, g_h, b_b, b_h, s_b, s_h;
    float scale;
    uint32_t heads;  // B * HV
    uint32_t widths, heads_packed;
};

// One slot of the workspace belongs to one tile of 64 tokens of one value head; offsets in elements.
struct KdaSlot {
    uint32_t w, qg, kt;             // (I + KK diag(beta))^-1 kg; scale P q; E k: [64][kp] each
    uint32_t da_t, dkk, dkk_t, dr;  // over the three above, once they are used: pair gradients by columns, of KK, of KK
                                    // by columns; of beta r, [64][vp]
    uint32_t r, a, gs,
        b;  // residuals [64][vp]; attention [64][64], later its gradient; sum of log_decay [kp]; beta [64], then scale
    uint32_t kk, s, du, ds,
        d_o;  // backward only: KK, state before the tile [kp][vp], gradients of U, of the state after, of the output;
              // from s on, once they are used: k and q from a block's start, k to its end [64][kp] each
    uint32_t dq, dk;  // backward of grouped heads only: sums over the group
    uint32_t size;
};

KDA_FUNCTION KdaSlot kdaSlot(uint32_t kp, uint32_t vp, bool keep, bool grouped) {
    KdaSlot s;
    s.w = 0;
    s.qg = 64 * kp;
    s.kt = 128 * kp;
    s.da_t = 0;
    s.dkk = 4096;
    s.dkk_t = 8192;
    s.dr = 12288;
    uint32_t shared_ = 12288 + 64 * vp;
    s.r = !keep || 192 * kp > shared_ ? 192 * kp : shared_;
    s.a = s.r + 64 * vp;
    s.gs = s.a + 4096;
    s.b = s.gs + kp;
    s.kk = s.b + 72;
    s.s = s.kk + 4096;
    s.du = s.s + kp * vp;
    s.ds = s.du + 64 * vp;
    s.d_o = s.ds + kp * vp;
    s.dq = s.d_o + 64 * vp;
    if (s.dq < s.s + 192 * kp) s.dq = s.s + 192 * kp;
    s.dk = s.dq + 64 * kp;
    s.size = !keep ? s.kk : grouped ? s.dk + 64 * kp : s.dq;
    return s;
}

}  // namespace vkml

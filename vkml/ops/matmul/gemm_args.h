#pragma once
#include "vkml/runtime/slang/args.h"

namespace vkml {

/// c[batch][m][n] = sum over k of a[batch][m][k] b[batch][k][n] (+ bias[n]); c is packed, strides count elements. The
/// batch index is (outer, inner), and its strides have that order. With split K every part of k_part elements writes
/// f32 sums to its own slab of c. Terms are added in chains of `chain` elements from zero, the chains in order.
struct GemmArgs {
    VKML_PTR(T.Storage) a;
    VKML_PTR(T.Storage) b;
    VKML_PTR(T.Storage) c;
    VKML_PTR(T.Storage) bias;  // null: none
    int64_t a_row, a_col, b_row, b_col;
    int64_t a_outer, a_inner, b_outer, b_inner;
    uint32_t m, n, k;
    uint32_t batch, batch_inner;
    uint32_t flags;   // of gemm_flags.h
    uint32_t k_part;  // a multiple of 32; at least k when K is not split
    uint32_t chain;   // a multiple of 32
};

}  // namespace vkml

// Arguments of the attention kernels. Tensors are [B, H G, L, E] and [B, H, S, E]: G query heads share one of key and
// value. "Flat row" r of a (b, h) is row r % L of query head h G + r / L. Strides are in elements; those of rows are
// specialization constants, the innermost ones 1.
#pragma once
#include "vkml/runtime/slang/args.h"

namespace vkml {

struct AttentionArgs {
    VKML_PTR(T.Storage) query;
    VKML_PTR(T.Storage) key;
    VKML_PTR(T.Storage) value;
    VKML_PTR(uint8_t) mask;      // of the kind that AttentionSpec says
    VKML_PTR(T.Storage) output;  // packed
    VKML_PTR(T.Value) lse;       // logarithm of the sum of exponentials of each row, or null
    VKML_PTR(T.Value) parts;     // the split form's partial results
    uint64_t seed;               // seed of the dropout mask
    uint32_t q_b, q_h, k_b, k_h, v_b, v_h, m_b, m_h, m_row;
    uint32_t L, S, H, batches;  // batches: B H
    float scale;
};

/// Gradients of query (into first), or of key and value (first, second).
struct AttentionBackwardArgs {
    VKML_PTR(T.Storage) query;
    VKML_PTR(T.Storage) key;
    VKML_PTR(T.Storage) value;
    VKML_PTR(uint8_t) mask;
    VKML_PTR(T.Storage) grad;    // of the output, packed
    VKML_PTR(T.Value) stats;     // pairs: lse, and sum of grad * output, of each row
    VKML_PTR(T.Storage) first;   // packed
    VKML_PTR(T.Storage) second;  // packed
    uint64_t seed;
    uint32_t q_b, q_h, k_b, k_h, v_b, v_h, m_b, m_h, m_row;
    uint32_t L, S, H, batches;
    float scale;
};

struct AttentionDeltaArgs {
    VKML_PTR(T.Storage) output;
    VKML_PTR(T.Storage) grad;
    VKML_PTR(T.Value) lse;
    VKML_PTR(T.Value) stats;
    uint64_t rows;
    uint32_t width;
};

/// Merges the split form's parts: [row][part][width + 2], the sum, its maximum and its divisor.
struct AttentionMergeArgs {
    VKML_PTR(T.Value) parts;
    VKML_PTR(T.Storage) output;
    VKML_PTR(T.Value) lse;
    uint64_t rows;
    uint32_t width, count;
};

}  // namespace vkml

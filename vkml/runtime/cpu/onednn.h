#pragma once
#include <cstdint>

#include "vkml/core/dtype.h"

/// What vkML asks of oneDNN. The differences between its versions stay in onednn.cpp.
namespace vkml::cpu {

/// Batched product of row-major c (batch, m, n) = a (batch, m, k) b (batch, k, n) + bias (n). Strides in elements; the
/// batch index is (outer, inner). A batch stride of 0 broadcasts.
struct MatmulProblem {
    DType dtype = DType::f32;
    std::int64_t m = 0, n = 0, k = 0, outer = 1, inner = 1;
    std::int64_t a_strides[4] = {};  // outer, inner, row, column
    std::int64_t b_strides[4] = {};
    bool bias = false;
    bool operator==(const MatmulProblem&) const = default;
};

/// Runs the product and returns true, or returns false when oneDNN has no kernel here whose sums are the same for any
/// number of rows and threads. Primitives are kept per thread.
bool onednn_matmul(const MatmulProblem& problem, const void* a, const void* b, void* c, const void* bias);

}  // namespace vkml::cpu

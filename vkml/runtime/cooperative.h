#pragma once
#include <algorithm>

#include "vkml/runtime/backend.h"

namespace vkml {

/// The device lists the cooperative matrices that kernels here are written for: 16x16x16 of `operand` with f32 sums.
inline bool has_cooperative_matrices(const Limits& limits, DType operand) {
    return std::ranges::any_of(limits.cooperative_matrices, [operand](const Limits::CooperativeMatrix& c) {
        return c.m == 16 && c.n == 16 && c.k == 16 && c.operand == operand && c.accumulator == DType::f32;
    });
}

}  // namespace vkml

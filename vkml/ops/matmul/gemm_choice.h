#pragma once
#include <cstdint>
#include <string_view>

#include "vkml/ops/matmul/precision.h"
#include "vkml/runtime/backend.h"

/// Which pipeline a product takes on a GPU: operators.md's rules as a table, the first row that fits wins.
namespace vkml {

enum class Pipeline : std::uint8_t { gemv, tiled, db, split_k, reg, naive, large, medium, coopmat };

/// What the choice may look at: one matrix of the batch, so that a batch gives the bits of its members.
struct GemmProblem {
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
    DType dtype = DType::f32;
    Precision precision = Precision::highest;
    bool k_packed = false;  // both operands have unit stride along k
    bool aligned =
        false;  // both are packed along one axis, lines less than 2^24 apart, everything else a multiple of 16 bytes
};

struct Choice {
    Pipeline pipeline;
    std::uint32_t parts = 1;   // of K
    std::uint32_t k_part = 0;  // a multiple of 32
};

Choice choose_gemm(std::string_view op, const GemmProblem& problem, const Limits& limits, std::uint64_t dispatch);

/// Notes a choice that has no alternatives (the CPU's) in the decision log.
void publish_gemm(std::string_view op, std::string_view chose, std::string_view because, std::uint64_t dispatch);

/// Notes that products of f32 asked for in high or medium are computed in highest.
void publish_precision(std::string_view op, const GemmProblem& problem, std::uint64_t dispatch);

}  // namespace vkml

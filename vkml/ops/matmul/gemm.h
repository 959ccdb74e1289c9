#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "vkml/core/tensor.h"

/// The product behind matmul, linear, addmm and conv2d: no tape, no vectors, every kernel choice.
namespace vkml {

/// What follows the bias, before the one rounding. The values are those of activation.slang.
enum class Activation : std::uint8_t { none, relu, gelu, gelu_tanh, silu };

/// a (..., m, k) times b (..., k, n) with broadcast batch axes, plus an optional bias (n) on every row, then the
/// activation. The caller has checked shapes, dtypes and devices; `op` names the operator in the decision log.
Tensor gemm(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& bias = {},
            Activation activation = Activation::none);

/// For tests: the pipeline to take from now on, by name ("gemv", "gemm_naive", ...); empty gives the choice back to the
/// table.
void force_gemm(std::string_view name);
/// The names force_gemm and VKML_GEMM_KERNEL take.
std::vector<std::string_view> gemm_names();

}  // namespace vkml

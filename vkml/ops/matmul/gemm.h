#pragma once
#include <string_view>
#include <vector>

#include "vkml/core/tensor.h"

/// The product behind matmul, linear, addmm and conv2d: no tape, no vectors, every kernel choice.
namespace vkml {

/// a (..., m, k) times b (..., k, n) with broadcast batch axes, plus an optional bias (n) on every row. The caller has
/// checked shapes, dtypes and devices; `op` names the operator in the decision log.
Tensor gemm(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& bias = {});

/// For tests: the pipeline to take from now on, by name ("gemv", "gemm_naive", ...); empty gives the choice back to the
/// table.
void force_gemm(std::string_view name);
/// The names force_gemm takes.
std::vector<std::string_view> gemm_names();

}  // namespace vkml

#pragma once
#include <cstdint>
#include <string_view>

namespace vkml {

/// How products of 32-bit and 16-bit floats are summed. exact: blocks of 32 in a pairwise tree without FMA, the same
/// bits on every device. highest: f32 FMA in a fixed order. high allows operands split into 16-bit parts, medium
/// operands rounded to bf16; no kernel does so yet: both compute as highest, and the decision log says so
/// (matmul.precision).
enum class Precision : std::uint8_t { exact, highest, high, medium };

/// The process-wide mode: VKML_MATMUL_PRECISION at first use, else highest.
Precision float32_matmul_precision();
std::string_view float32_matmul_precision_name();
/// Takes "exact", "highest", "high" or "medium"; throws ShapeError for any other word.
void set_float32_matmul_precision(std::string_view word);

}  // namespace vkml

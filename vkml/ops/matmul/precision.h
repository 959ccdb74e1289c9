#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace vkml {

/// How products of 32-bit and 16-bit floats are summed. exact: blocks of 32 in a pairwise tree without FMA, the same
/// bits on every device. highest: f32 FMA in a fixed order, or where a device's matrices are fast enough for it, large
/// f32 products from three bf16 parts of each operand, 24 bits, with smaller errors than FMAs leave; a row has the same
/// bits alone and in its matrix. high: f32 split into two halves on cooperative matrices, with the accuracy of f32;
/// highest where there are none. medium: f32 operands rounded to bf16, f32 sums.
enum class Precision : std::uint8_t { exact, highest, high, medium };

/// The process-wide mode: VKML_MATMUL_PRECISION at first use, else highest.
Precision float32_matmul_precision();
std::string_view float32_matmul_precision_name();
/// The mode of that name, if there is one.
std::optional<Precision> precision_named(std::string_view word);
/// Takes "exact", "highest", "high" or "medium"; throws ShapeError for any other word.
void set_float32_matmul_precision(std::string_view word);

}  // namespace vkml

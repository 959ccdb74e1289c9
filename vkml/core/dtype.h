#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Element types and the rules that combine them.
namespace vkml {

/// Order matters to nothing but `none`, which means "no element type" (a kernel without one, an undefined tensor).
enum class DType : std::uint8_t { none, boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };

inline constexpr int kDTypeCount = 11;

/// Rank of a dtype in promotion: an operand of lower standing changes a result only if its kind is higher.
enum class Kind : std::uint8_t { boolean, integer, floating };

/// Bytes of one element.
constexpr std::size_t itemsize(DType d) {
    switch (d) {
        case DType::none:
            return 0;
        case DType::boolean:
        case DType::u8:
        case DType::i8:
            return 1;
        case DType::i16:
        case DType::f16:
        case DType::bf16:
            return 2;
        case DType::i32:
        case DType::f32:
            return 4;
        case DType::i64:
        case DType::f64:
            return 8;
    }
    return 0;
}

constexpr bool is_floating(DType d) { return d >= DType::f16; }
constexpr bool is_integer(DType d) { return d >= DType::u8 && d <= DType::i64; }
constexpr Kind kind(DType d) { return is_floating(d) ? Kind::floating : is_integer(d) ? Kind::integer : Kind::boolean; }

/// The public name: "float32", "bool".
constexpr std::string_view name(DType d) {
    constexpr std::string_view names[kDTypeCount] = {"none",  "bool",    "uint8",    "int8",    "int16",  "int32",
                                                     "int64", "float16", "bfloat16", "float32", "float64"};
    return names[static_cast<int>(d)];
}

/// The dtype two tensors with axes combine to (PyTorch's lattice): f16 with bf16 gives f32, u8 with i8 gives i16.
DType promote(DType a, DType b);

/// The process-wide default for Python floats and integer-to-float results; f32 unless set. Takes floats only
/// (DTypeError).
DType default_dtype();
void set_default_dtype(DType d);

}  // namespace vkml

#include "vkml/core/scalar.h"

#include <bit>
#include <cmath>
#include <limits>

#include "vkml/core/float16.h"

namespace vkml {
namespace {

/// Truncates towards zero, saturates at the type's ends; NaN gives 0.
std::int64_t saturate(double value, double low, double high) {
    if (std::isnan(value)) return 0;
    if (value <= low) return static_cast<std::int64_t>(low);
    // 2^63 itself is no int64.
    if (value >= high)
        return high >= 0x1p63 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(high);
    return static_cast<std::int64_t>(value);
}

std::int64_t to_integer(const Scalar& s, DType dtype) {
    if (s.kind != Scalar::Kind::floating) return s.integer;
    switch (dtype) {
        case DType::u8:
            return saturate(s.floating, 0, 255);
        case DType::i8:
            return saturate(s.floating, -128, 127);
        case DType::i16:
            return saturate(s.floating, -32768, 32767);
        case DType::i32:
            return saturate(s.floating, -0x1p31, 0x1p31 - 1);
        default:
            return saturate(s.floating, -0x1p63, 0x1p63);
    }
}

float to_float(const Scalar& s) {
    return s.kind == Scalar::Kind::floating ? static_cast<float>(s.floating) : static_cast<float>(s.integer);
}

/// An int64 as a double that rounds to bf16 as the integer itself would: what does not fit makes the last bit odd.
double to_odd_double(std::int64_t value) {
    const std::uint64_t magnitude =
        value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    const std::uint64_t kept =
        magnitude >> 53 ? (magnitude & ~0x7ffull) | ((magnitude & 0x7ff) ? 0x800u : 0u) : magnitude;
    return value < 0 ? -static_cast<double>(kept) : static_cast<double>(kept);
}

}  // namespace

std::uint64_t Scalar::bits(DType dtype) const {
    switch (dtype) {
        case DType::f64:
            return std::bit_cast<std::uint64_t>(kind == Kind::floating ? floating : static_cast<double>(integer));
        case DType::f32:
            return std::bit_cast<std::uint32_t>(to_float(*this));
        case DType::f16:
            return kind == Kind::floating ? f16_from_double(floating) : f16_from_float(to_float(*this));
        case DType::bf16:
            return bf16_from_double(kind == Kind::floating ? floating : to_odd_double(integer));
        case DType::boolean:
            return kind == Kind::floating ? floating != 0 : integer != 0;
        default:
            return static_cast<std::uint64_t>(to_integer(*this, dtype));
    }
}

DType Scalar::natural_dtype() const {
    return kind == Kind::floating ? default_dtype() : kind == Kind::integer ? DType::i64 : DType::boolean;
}

}  // namespace vkml

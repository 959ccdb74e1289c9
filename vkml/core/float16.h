#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

/// 16-bit floats on the host, by bits: to nearest, ties to even; subnormals kept, overflow to infinity, NaN stays NaN.
namespace vkml {

inline float float_from_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bf16_from_float(float value) {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

inline float float_from_f16(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
    const float tiny = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(tiny));
}

inline std::uint16_t f16_from_float(float value) {
    const std::uint32_t u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude >= 0x38800000u)
        return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
    // Adding 0.5 leaves the half's subnormal, rounded by the FPU, in the low bits.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
}

/// A double rounded to float so that rounding once more to fewer bits gives the correctly rounded answer (round to
/// odd).
inline float float_to_odd(double value) {
    const float nearest = static_cast<float>(value);
    if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest)) return nearest;
    std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
    if (bits & 1u) return nearest;
    // An even neighbour was taken: step to the odd one on the other side of the value.
    const bool away = std::abs(static_cast<double>(nearest)) < std::abs(value);
    return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

inline std::uint16_t f16_from_double(double value) { return f16_from_float(float_to_odd(value)); }
inline std::uint16_t bf16_from_double(double value) { return bf16_from_float(float_to_odd(value)); }

}  // namespace vkml

#pragma once
#include <bit>
#include <cstdint>

namespace vkml {

/// Division by a constant as a multiplication and a shift, right for numerators below 2^31 (Granlund and Montgomery).
/// quickDivide() in slang/division.slang uses it.
struct Divisor {
    std::uint32_t multiplier, shift;

    /// d: 1 to 2^31 - 1.
    explicit constexpr Divisor(std::uint32_t d)
        : multiplier(static_cast<std::uint32_t>((std::uint64_t{1} << (31 + std::bit_width(d - 1))) / d + 1)),
          shift(static_cast<std::uint32_t>(31 + std::bit_width(d - 1))) {}
    constexpr std::uint32_t divide(std::uint32_t n) const {
        return static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> shift);
    }
};

}  // namespace vkml

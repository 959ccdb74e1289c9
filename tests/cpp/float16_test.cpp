// Every 16-bit pattern, and every midpoint between neighbours, from both sides.
#include "vkml/core/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace vkml;

namespace {

struct Format {
    const char* name;
    int exponent_bits, mantissa_bits;
    float (*widen)(std::uint16_t);
    std::uint16_t (*from_float)(float);
    std::uint16_t (*from_double)(double);

    std::uint16_t infinity() const { return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }

    /// The value by the definition of the format.
    double value(std::uint16_t bits) const {
        const int bias = (1 << (exponent_bits - 1)) - 1;
        const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
        const int mantissa = bits & ((1 << mantissa_bits) - 1);
        const double sign = bits & 0x8000 ? -1.0 : 1.0;
        if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * INFINITY;
        if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
        return sign * std::ldexp(1.0 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
    }
};

class SixteenBits : public testing::TestWithParam<Format> {};

TEST_P(SixteenBits, EveryPatternWidensToItsValueAndBack) {
    const Format& f = GetParam();
    for (std::uint32_t i = 0; i < 65536; i++) {
        const auto bits = static_cast<std::uint16_t>(i);
        const double expected = f.value(bits);
        const float wide = f.widen(bits);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(wide)) << i;
            ASSERT_TRUE(std::isnan(f.value(f.from_float(wide)))) << i;
            ASSERT_TRUE(std::isnan(f.value(f.from_double(std::nan(""))))) << i;
            continue;
        }
        ASSERT_EQ(static_cast<double>(wide), expected) << i;
        ASSERT_EQ(std::signbit(wide), (bits & 0x8000) != 0) << i;
        ASSERT_EQ(f.from_float(wide), bits) << i;
        ASSERT_EQ(f.from_double(wide), bits) << i;
    }
}

TEST_P(SixteenBits, MidpointsGoToTheEvenNeighbourAndTheirSidesToTheNearer) {
    const Format& f = GetParam();
    for (std::uint16_t low = 0; low < f.infinity(); low++) {
        const auto high = static_cast<std::uint16_t>(low + 1);
        // Infinity stands where the next finite value would be.
        const double below = f.value(low),
                     step = low ? below - f.value(static_cast<std::uint16_t>(low - 1)) : f.value(1);
        const bool last = high == f.infinity();
        const double above = last ? below + step : f.value(high);
        const double middle = (below + above) / 2;
        const std::uint16_t even = low % 2 == 0 ? low : high;
        for (const std::uint16_t sign : {0, 0x8000}) {
            const double s = sign ? -1.0 : 1.0;
            const auto signed_bits = [&](std::uint16_t bits) { return static_cast<std::uint16_t>(bits | sign); };
            ASSERT_EQ(f.from_double(s * middle), signed_bits(even)) << low;
            ASSERT_EQ(f.from_double(s * std::nextafter(middle, 0)), signed_bits(low)) << low;
            ASSERT_EQ(f.from_double(s * std::nextafter(middle, 1e308)), signed_bits(high)) << low;
            const auto narrow = static_cast<float>(middle);  // exact: one more bit than the format
            ASSERT_EQ(static_cast<double>(narrow), middle);
            ASSERT_EQ(f.from_float(static_cast<float>(s) * narrow), signed_bits(even)) << low;
            ASSERT_EQ(f.from_float(static_cast<float>(s) * std::nextafterf(narrow, 0)), signed_bits(low)) << low;
            ASSERT_EQ(f.from_float(static_cast<float>(s) * std::nextafterf(narrow, 1e38f * 10)), signed_bits(high))
                << low;
        }
    }
}

TEST_P(SixteenBits, FarOutsideIsInfinityOrZero) {
    const Format& f = GetParam();
    EXPECT_EQ(f.from_double(1e300), f.infinity());
    EXPECT_EQ(f.from_double(-1e300), f.infinity() | 0x8000);
    EXPECT_EQ(f.from_double(1e-300), 0);
    EXPECT_EQ(f.from_double(-1e-300), 0x8000);
    EXPECT_EQ(f.from_float(std::numeric_limits<float>::max()), f.infinity());
    EXPECT_EQ(f.from_float(std::numeric_limits<float>::infinity()), f.infinity());
}

INSTANTIATE_TEST_SUITE_P(Formats, SixteenBits,
                         testing::Values(Format{"f16", 5, 10, float_from_f16, f16_from_float, f16_from_double},
                                         Format{"bf16", 8, 7, float_from_bf16, bf16_from_float, bf16_from_double}),
                         [](const auto& info) { return info.param.name; });

}  // namespace

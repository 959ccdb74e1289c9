// Promotion, names and sizes of element types; numbers as elements.
#include "vkml/core/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "vkml/core/error.h"
#include "vkml/core/float16.h"
#include "vkml/core/scalar.h"

using namespace vkml;

namespace {

constexpr std::array kAll{DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                          DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

// PyTorch 2.13's torch.promote_types, row by row in the order of kAll; one letter per type.
constexpr std::string_view kLetters = "buchilHBfd";  // bool u8 i8 i16 i32 i64 f16 bf16 f32 f64
constexpr std::array<std::string_view, 10> kPromoted{
    "buchilHBfd",  // bool
    "uuhhilHBfd",  // uint8
    "chchilHBfd",  // int8
    "hhhhilHBfd",  // int16
    "iiiiilHBfd",  // int32
    "llllllHBfd",  // int64
    "HHHHHHHffd",  // float16
    "BBBBBBfBfd",  // bfloat16
    "fffffffffd",  // float32
    "dddddddddd",  // float64
};

TEST(DTypeTest, PromotionIsTorchsForAllPairs) {
    for (std::size_t a = 0; a < kAll.size(); a++)
        for (std::size_t b = 0; b < kAll.size(); b++) {
            const DType expected = kAll[kLetters.find(kPromoted[a][b])];
            EXPECT_EQ(promote(kAll[a], kAll[b]), expected) << name(kAll[a]) << " with " << name(kAll[b]);
            EXPECT_EQ(promote(kAll[a], kAll[b]), promote(kAll[b], kAll[a]));
        }
}

TEST(DTypeTest, NamesAndSizes) {
    const std::map<std::string, std::size_t> expected{{"bool", 1},    {"uint8", 1},  {"int8", 1},    {"int16", 2},
                                                      {"int32", 4},   {"int64", 8},  {"float16", 2}, {"bfloat16", 2},
                                                      {"float32", 4}, {"float64", 8}};
    std::map<std::string, std::size_t> got;
    for (DType d : kAll) got[std::string(name(d))] = itemsize(d);
    EXPECT_EQ(got, expected);
}

TEST(DTypeTest, DefaultIsAFloat) {
    EXPECT_EQ(default_dtype(), DType::f32);
    EXPECT_THROW(set_default_dtype(DType::i32), DTypeError);
    EXPECT_EQ(default_dtype(), DType::f32);
    EXPECT_EQ(Scalar(1.5).natural_dtype(), DType::f32);
    EXPECT_EQ(Scalar(1).natural_dtype(), DType::i64);
    EXPECT_EQ(Scalar(true).natural_dtype(), DType::boolean);
}

std::int64_t as_integer(const Scalar& s, DType d) {
    const std::uint64_t bits = s.bits(d);
    switch (d) {
        case DType::u8:
            return static_cast<std::uint8_t>(bits);
        case DType::i8:
            return static_cast<std::int8_t>(bits);
        case DType::i16:
            return static_cast<std::int16_t>(bits);
        case DType::i32:
            return static_cast<std::int32_t>(bits);
        default:
            return static_cast<std::int64_t>(bits);
    }
}

TEST(ScalarTest, FloatToIntegerTruncatesAndSaturates) {
    const double inf = std::numeric_limits<double>::infinity();
    struct Case {
        DType dtype;
        std::int64_t low, high;
    };
    for (const Case& c : {Case{DType::u8, 0, 255}, Case{DType::i8, -128, 127}, Case{DType::i16, -32768, 32767},
                          Case{DType::i32, INT32_MIN, INT32_MAX}, Case{DType::i64, INT64_MIN, INT64_MAX}}) {
        EXPECT_EQ(as_integer(inf, c.dtype), c.high) << name(c.dtype);
        EXPECT_EQ(as_integer(-inf, c.dtype), c.low) << name(c.dtype);
        EXPECT_EQ(as_integer(1e300, c.dtype), c.high) << name(c.dtype);
        EXPECT_EQ(as_integer(std::nan(""), c.dtype), 0) << name(c.dtype);
        EXPECT_EQ(as_integer(2.99, c.dtype), 2) << name(c.dtype);
        EXPECT_EQ(as_integer(static_cast<double>(c.high) + (c.dtype == DType::i64 ? 0 : 0.9), c.dtype), c.high)
            << name(c.dtype);
        if (c.low < 0) {
            EXPECT_EQ(as_integer(-2.99, c.dtype), -2) << name(c.dtype);
        }
    }
}

TEST(ScalarTest, IntegersKeepTheirBitsAndWrap) {
    const std::int64_t odd = (std::int64_t{1} << 53) + 1;
    EXPECT_EQ(as_integer(odd, DType::i64), odd);
    EXPECT_EQ(as_integer(std::int64_t{300}, DType::u8), 44);
    EXPECT_EQ(as_integer(std::int64_t{-1}, DType::u8), 255);
    EXPECT_EQ(as_integer(std::int64_t{200}, DType::i8), -56);
}

TEST(ScalarTest, FloatsRoundOnce) {
    EXPECT_EQ(Scalar(65519.0).bits(DType::f16), 0x7bff);
    EXPECT_EQ(Scalar(65520.0).bits(DType::f16), 0x7c00);
    EXPECT_EQ(Scalar(std::int64_t{16777217}).bits(DType::f32), std::bit_cast<std::uint32_t>(16777216.0f));
    // Just above a tie of the target: rounding to f32 on the way would make it the tie.
    EXPECT_EQ(Scalar(1.0 + 0x1p-11 + 0x1p-40).bits(DType::f16), 0x3c01);
    EXPECT_EQ(Scalar(1.0 + 0x1p-8 + 0x1p-40).bits(DType::bf16), 0x3f81);
    EXPECT_EQ(Scalar((std::int64_t{1} << 32) + (std::int64_t{1} << 24) + 1).bits(DType::bf16),
              bf16_from_float(0x1.02p32f));
    EXPECT_EQ(Scalar((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1).bits(DType::bf16),
              bf16_from_float(0x1.02p62f));
    EXPECT_EQ(Scalar(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54)).bits(DType::bf16), bf16_from_float(-0x1p62f));
    EXPECT_EQ(Scalar((std::int64_t{1} << 53) + 1).bits(DType::f64), std::bit_cast<std::uint64_t>(0x1p53));
}

TEST(ScalarTest, BoolIsWhatIsNotZero) {
    EXPECT_EQ(Scalar(-0.0).bits(DType::boolean), 0u);
    EXPECT_EQ(Scalar(1e-300).bits(DType::boolean), 1u);
    EXPECT_EQ(Scalar(std::nan("")).bits(DType::boolean), 1u);
    EXPECT_EQ(Scalar(256).bits(DType::boolean), 1u);
    EXPECT_EQ(Scalar(true).bits(DType::f16), 0x3c00u);
}

}  // namespace

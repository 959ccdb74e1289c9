// Included by C++ and by Slang: the arithmetic that decides what is drawn, the same to the bit on both.
#pragma once
#ifdef __cplusplus
#include <cstdint>
#define VKML_BITS inline
namespace vkml {
using uint = std::uint32_t;
}
#else
#define VKML_BITS
#endif

namespace vkml {

/// Larger than every key: a weight of 0.
static const int64_t kNeverDrawn = int64_t(0x7fffffffffffffff);

/// Of the bits of a float32: a number that is negative, infinite or NaN. -0 is 0.
VKML_BITS bool isBadWeight(uint bits) { return bits > 0x7f7fffffu && bits != 0x80000000u; }

/// A weight is significand * 2^(scale - 150).
VKML_BITS uint significandOf(uint bits) {
    return (bits & 0x7fffffffu) < 0x800000u ? bits & 0x7fffffu : (bits & 0x7fffffu) | 0x800000u;
}
VKML_BITS uint scaleOf(uint bits) { return (bits & 0x7fffffffu) < 0x800000u ? 1u : bits >> 23; }

VKML_BITS uint64_t productHigh(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
#else
    uint64_t mask = uint64_t(0xffffffffu);
    uint64_t a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    uint64_t m1 = a1 * b0 + ((a0 * b0) >> 32), m2 = a0 * b1 + (m1 & mask);
    return a1 * b1 + (m1 >> 32) + (m2 >> 32);
#endif
}

/// Zero bits above the highest set one, of which there must be one.
VKML_BITS uint leadingZeros(uint64_t x) {
    uint zeros = 0;
    for (uint step = 32u; step > 0u; step >>= 1) {
        if ((x >> (64u - step)) != 0) continue;
        zeros += step;
        x <<= step;
    }
    return zeros;
}

/// What a weight counts beside the largest of its row, in integers.
VKML_BITS int64_t shareOf(uint bits, uint largest, uint shift) {
    uint down = scaleOf(largest) - scaleOf(bits);
    return down > 63u ? int64_t(0) : int64_t((uint64_t(significandOf(bits)) << shift) >> down);
}

/// -log2(reciprocalOf(i) / 2^16) for i = 0 .. 63, times 2^60.
static const uint64_t kLogTable[64] = {
    0x0000000000000000ul, 0x005b9894c5eaa7e2ul, 0x00b5c03f1a22bf34ul, 0x010ea8b8033bc2f3ul, 0x01663dfe58266953ul,
    0x01bc6b9d7c06b6fdul, 0x021181b0f835c3c6ul, 0x026555a954e6adf7ul, 0x02b7ef14a9d86b0eul, 0x030970eb1b71fea8ul,
    0x0359e600657cf1baul, 0x03a9242df94b3749ul, 0x03f76d333782fc03ul, 0x0444b3896ca5c852ul, 0x0490e96434adc9b7ul,
    0x04dc39b16271452aul, 0x0526984da22641fbul, 0x056ff8d9e0a32eacul, 0x05b86c5189648a47ul, 0x060022daca5c5817ul,
    0x0646d61bb8f1bd84ul, 0x068cd5efa5a8fedbul, 0x06d1fa4523e86176ul, 0x071638cdb3214d1cul, 0x0759c68ac49d6e9ful,
    0x079c7aeb4d7c222cul, 0x07de8d279d1f4dceul, 0x081fd4bf3cf8baf1ul, 0x086069f9dc494e83ul, 0x08a044e3cffba7ccul,
    0x08df7f50129fef9eul, 0x091e12207693a7edul, 0x095bf618feed7aaful, 0x099923e123e2f1f1ul, 0x09d5b75d7ef0c87cul,
    0x0a11cdc9aa3a2381ul, 0x0a4d1986156dda95ul, 0x0a88001b8b2e0abbul, 0x0ac2335eadfc26a5ul, 0x0afbd19d7cafaa57ul,
    0x0b34fa81d2a3c522ul, 0x0b6d835497f32c40ul, 0x0ba58c4fd423fd8ful, 0x0bdce9dcc961871aul, 0x0c13e3bc6070304bul,
    0x0c4a75e0325724dcul, 0x0c804ccfe16ac306ul, 0x0cb5da4bbf257274ul, 0x0ceaca5ed6e86ec9ul, 0x0d1f6927d01dd8b0ul,
    0x0d53612245c735d1ul, 0x0d86ffc13435c083ul, 0x0dba419fb172fb72ul, 0x0decf918c14405a8ul, 0x0e1f4c277238a674ul,
    0x0e510c54d3a29118ul, 0x0e828b83fd61e554ul, 0x0eb39b82d157f25eul, 0x0ee438a30a58504aul, 0x0f145f2b9e275245ul,
    0x0f443811f3eabc87ul, 0x0f73c09d4cd4b18ful, 0x0fa2c89976e56ee1ul, 0x0fd179f358765577ul,
};
/// 1 / (k ln 2) for k = 1 .. 8, times 2^60: log2(1 + z) is their alternating series.
static const uint64_t kLogSeries[8] = {
    0x171547652b82fe17ul, 0x0b8aa3b295c17f0cul, 0x07b1c2770e80ff5dul, 0x05c551d94ae0bf86ul,
    0x049ddb143be6ff9eul, 0x03d8e13b87407faful, 0x034c2ec54f5bdb28ul, 0x02e2a8eca5705fc3ul,
};

/// 2^16 / (1 + i / 64), rounded up.
VKML_BITS uint reciprocalOf(uint i) { return (0x400000u + 63u + i) / (64u + i); }

/// -log2 of a uniform number from its 64 bits, with 48 bits of fraction and an error of one unit; never 0.
VKML_BITS uint64_t exponentialOf(uint64_t word) {
    word |= uint64_t(1);
    uint zeros = leadingZeros(word);
    uint64_t y = word << zeros;  // counts 2^-63, and lies in [1, 2)
    uint i = uint(y >> 57) & 63u;
    uint64_t reduced = productHigh(y, uint64_t(reciprocalOf(i)) << 47);  // counts 2^-62, and lies in [1, 1.017)
    uint64_t z = reduced << 2, sum = kLogSeries[7];                      // the one falls off; z counts 2^-64
    for (int k = 6; k >= 0; k--) sum = kLogSeries[k] - productHigh(sum, z);
    uint64_t most = uint64_t(0xffffffffffff), digits = (kLogTable[i] + productHigh(sum, z)) >> 12;
    return (uint64_t(zeros + 1u) << 48) - (digits < most ? digits : most);
}

/// exponential / weight in an order-preserving form: ten bits of exponent above 40 of significand.
VKML_BITS int64_t keyOf(uint64_t exponential, uint bits) {
    uint significand = significandOf(bits), scale = scaleOf(bits);
    if (significand == 0u) return kNeverDrawn;
    uint lift = leadingZeros(uint64_t(significand)) - 40u, zeros = leadingZeros(exponential);
    uint64_t quotient = (exponential << zeros) / (uint64_t(significand) << lift);  // from 2^39 to below 2^41
    uint exponent = 400u + lift - zeros - scale;
    if ((quotient >> 40) == 0) {
        quotient <<= 1;
        exponent -= 1u;
    }
    return int64_t((uint64_t(exponent) << 40) | (quotient & uint64_t(0xffffffffff)));
}

}  // namespace vkml

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
    uint64_t mask = uint64_t(0xffffffffu);
    uint64_t a0 = a & mask, a1 = a >> 32, b0 = b & mask, b1 = b >> 32;
    uint64_t m1 = a1 * b0 + ((a0 * b0) >> 32), m2 = a0 * b1 + (m1 & mask);
    return a1 * b1 + (m1 >> 32) + (m2 >> 32);
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

/// -log2 of a uniform number from its 64 bits, with 48 bits of fraction; never 0. Digits by repeated squaring.
VKML_BITS uint64_t exponentialOf(uint64_t word) {
    word |= uint64_t(1);
    uint zeros = leadingZeros(word);
    uint64_t y = word << zeros, fraction = 0;  // y counts 2^-63, and lies in [1, 2)
    for (uint digit = 0u; digit < 48u; digit++) {
        y = productHigh(y, y);
        fraction <<= 1;
        if ((y >> 63) != 0)
            fraction |= uint64_t(1);
        else
            y <<= 1;
    }
    return (uint64_t(zeros + 1u) << 48) - fraction;
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

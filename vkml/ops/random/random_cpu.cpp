#include <bit>
#include <cmath>

#include "vkml/core/float16.h"
#include "vkml/core/random.h"
#include "vkml/ops/random/random_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

constexpr std::int64_t kDrawGrain = 4096;

template <class T, class Element>
void fill_draw(const RandomArgs& args, const Element& element) {
    T* output = reinterpret_cast<T*>(args.output);
    const Draw draw{args.seed, args.offset};
    cpu::parallel_for(static_cast<std::int64_t>(args.count), kDrawGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) output[i] = element(philox(draw, static_cast<std::uint64_t>(i)));
    });
}

/// The two below mirror random.slang step by step, so that both devices give the same bits where their sqrt agrees.
float log_unit(float u) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(u) - 0x3f3504f3u;
    const float exponent = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
    const float f = std::bit_cast<float>((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float s = f / (2.0f + f), z = s * s;
    const float series = z * (0.33333334f + z * (0.2f + z * (0.14285715f + z * 0.11111111f)));
    return (2.0f * s) + (2.0f * s * series + exponent * 0.69314718f);
}

float cos_turn(float v) {
    const auto quadrant = static_cast<std::uint32_t>(v * 4.0f + 0.5f);
    const float x = (v * 4.0f - static_cast<float>(quadrant)) * 1.57079637f, z = x * x;
    const float c = 1.0f + z * (-0.5f + z * (0.041666668f + z * (-0.0013888889f + z * 2.4801588e-5f)));
    const float s = x * (1.0f + z * (-0.16666667f + z * (0.008333334f + z * (-0.00019841270f + z * 2.7557319e-6f))));
    const float r = (quadrant & 1u) ? s : c;
    return ((quadrant + 1u) & 2u) ? -r : r;
}

float uniform(const PhiloxWords& w) { return static_cast<float>(w[0] >> 8) * 0x1p-24f; }

float normal(const PhiloxWords& w) {
    const float u = static_cast<float>((w[0] >> 8) + 1) * 0x1p-24f, v = static_cast<float>(w[1] >> 8) * 0x1p-24f;
    return std::sqrt(-2.0f * log_unit(u)) * cos_turn(v);
}

std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const std::uint64_t m1 = a1 * b0 + ((a0 * b0) >> 32), m2 = a0 * b1 + (m1 & 0xffffffffu);
    return a1 * b1 + (m1 >> 32) + (m2 >> 32);
}

template <class T>
void integers(const RandomArgs& args) {
    const std::uint64_t range = args.range, low = static_cast<std::uint64_t>(args.low);
    fill_draw<T>(args, [=](const PhiloxWords& w) {
        const std::uint64_t step = range <= (std::uint64_t{1} << 32)
                                       ? (w[0] * range) >> 32
                                       : multiply_high((std::uint64_t{w[1]} << 32) | w[0], range);
        return static_cast<T>(low + step);
    });
}

/// 16-bit floats hold the f32 number rounded.
template <class Number>
void floats(const RandomArgs& args, DType dtype, const Number& number) {
    switch (dtype) {
        case DType::f32:
            return fill_draw<float>(args, number);
        case DType::f16:
            return fill_draw<std::uint16_t>(args, [&](const PhiloxWords& w) { return f16_from_float(number(w)); });
        default:
            return fill_draw<std::uint16_t>(args, [&](const PhiloxWords& w) { return bf16_from_float(number(w)); });
    }
}

}  // namespace

void rand_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const RandomArgs*>(raw);
    if (dtype != DType::f64) return floats(args, dtype, uniform);
    fill_draw<double>(args, [](const PhiloxWords& w) {
        return static_cast<double>((std::uint64_t{w[0] >> 5} << 26) + (w[1] >> 6)) * 0x1p-53;
    });
}

void randn_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const RandomArgs*>(raw);
    if (dtype != DType::f64) return floats(args, dtype, normal);
    fill_draw<double>(args, [](const PhiloxWords& w) { return static_cast<double>(normal(w)); });
}

void randint_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const RandomArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1:
            return integers<std::uint8_t>(args);
        case 2:
            return integers<std::uint16_t>(args);
        case 4:
            return integers<std::uint32_t>(args);
        default:
            return integers<std::uint64_t>(args);
    }
}

}  // namespace vkml

#include <algorithm>

#include "vkml/core/float16.h"
#include "vkml/core/random.h"
#include "vkml/ops/random/random_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/philox.h"

namespace vkml {
namespace {

constexpr std::int64_t kDrawGrain = 16384, kStrip = 512;

template <class T, class Element>
void fill_draw(const RandomArgs& args, const Element& element) {
    T* output = reinterpret_cast<T*>(args.output);
    const Draw draw{args.seed, args.offset};
    cpu::parallel_for(static_cast<std::int64_t>(args.count), kDrawGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) output[i] = element(philox(draw, static_cast<std::uint64_t>(i)));
    });
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

using Fill = void (*)(Draw draw, std::uint64_t first, std::int64_t n, float* out);

void uniform(Draw draw, std::uint64_t first, std::int64_t n, float* out) {
    std::uint32_t words[kStrip];
    cpu::philox_words(draw, first, n, words);
    for (std::int64_t i = 0; i < n; i++) out[i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
}

/// Strips of f32 numbers, stored as they are or rounded to `T`.
template <class T, class Store>
void fill_strips(const RandomArgs& args, Fill fill, const Store& store) {
    T* output = reinterpret_cast<T*>(args.output);
    const auto run = [&](std::int64_t begin, std::int64_t end) {
        float strip[kStrip];
        for (std::int64_t i = begin; i < end; i += kStrip) {
            const std::int64_t n = std::min(kStrip, end - i);
            fill({args.seed, args.offset}, static_cast<std::uint64_t>(i), n, strip);
            for (std::int64_t k = 0; k < n; k++) output[i + k] = store(strip[k]);
        }
    };
    cpu::parallel_for(static_cast<std::int64_t>(args.count), kDrawGrain, run);
}

void floats(const RandomArgs& args, DType dtype, Fill fill) {
    switch (dtype) {
        case DType::f64:
            return fill_strips<double>(args, fill, [](float x) { return static_cast<double>(x); });
        case DType::f32:
            return fill_strips<float>(args, fill, [](float x) { return x; });
        case DType::f16:
            return fill_strips<std::uint16_t>(args, fill, f16_from_float);
        default:
            return fill_strips<std::uint16_t>(args, fill, bf16_from_float);
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
    floats(*static_cast<const RandomArgs*>(raw), dtype, cpu::philox_normal);
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

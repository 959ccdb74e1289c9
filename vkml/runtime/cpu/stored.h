#pragma once
#include <cstdint>

#include "vkml/core/dtype.h"
#include "vkml/core/float16.h"

namespace vkml::cpu {

/// An element as it lies in memory, and how a loop computes with it.
struct Half {
    using Value = float;
    std::uint16_t bits;
    static float load(Half x) { return float_from_f16(x.bits); }
    static Half store(float x) { return {f16_from_float(x)}; }
};
struct Bfloat {
    using Value = float;
    std::uint16_t bits;
    static float load(Bfloat x) { return float_from_bf16(x.bits); }
    static Bfloat store(float x) { return {bf16_from_float(x)}; }
};
template <class T>
struct Plain {
    using Value = T;
    T bits;
    static T load(Plain x) { return x.bits; }
    static Plain store(T x) { return {x}; }
};

/// Calls f with an element of a floating-point dtype.
template <class F>
void for_float(DType dtype, const F& f) {
    switch (dtype) {
        case DType::f64:
            return f(Plain<double>{});
        case DType::f16:
            return f(Half{});
        case DType::bf16:
            return f(Bfloat{});
        default:
            return f(Plain<float>{});
    }
}

}  // namespace vkml::cpu

#pragma once
#include <cstdint>

#include "vkml/core/dtype.h"
#include "vkml/core/float16.h"

namespace vkml {

/// How a floating-point element lies in memory, and what a CPU loop computes with: as element.slang.
template <class V>
struct PlainElement {
    using Storage = V;
    using Value = V;
    static V load(V x) { return x; }
    static V store(V x) { return x; }
};
struct F16Element {
    using Storage = std::uint16_t;
    using Value = float;
    static float load(std::uint16_t x) { return float_from_f16(x); }
    static std::uint16_t store(float x) { return f16_from_float(x); }
};
struct Bf16Element {
    using Storage = std::uint16_t;
    using Value = float;
    static float load(std::uint16_t x) { return float_from_bf16(x); }
    static std::uint16_t store(float x) { return bf16_from_float(x); }
};

/// Calls `body` with the element type of a floating-point dtype.
template <class Body>
void with_element(DType dtype, const Body& body) {
    switch (dtype) {
        case DType::f64:
            return body(PlainElement<double>{});
        case DType::f16:
            return body(F16Element{});
        case DType::bf16:
            return body(Bf16Element{});
        default:
            return body(PlainElement<float>{});
    }
}

}  // namespace vkml

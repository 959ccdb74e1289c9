// Included once per instruction set: how the CPU's reductions read elements. See walk_cpu-inl.h.
#if defined(VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#undef VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#else
#define VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "vkml/core/dtype.h"
#include "vkml/core/float16.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// An element type: how it lies in memory and what it is accumulated in.
template <class S, class A>
struct Element {
    using Storage = S;
    using Acc = A;
    static A load(S stored) { return static_cast<A>(stored); }
    static S store(A value) { return static_cast<S>(value); }
};
struct Bool : Element<std::uint8_t, std::int64_t> {
    static std::int64_t load(std::uint8_t stored) { return stored != 0; }
    static std::uint8_t store(std::int64_t value) { return value != 0; }
};
struct Half : Element<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_f16(stored); }
    static std::uint16_t store(float value) { return f16_from_float(value); }
};
struct Brain : Element<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_bf16(stored); }
    static std::uint16_t store(float value) { return bf16_from_float(value); }
};

/// Calls f(Element) for a floating dtype.
template <class F>
void with_float(DType dtype, const F& f) {
    switch (dtype) {
        case DType::f64:
            return f(Element<double, double>{});
        case DType::f16:
            return f(Half{});
        case DType::bf16:
            return f(Brain{});
        default:
            return f(Element<float, float>{});
    }
}
/// Calls f(Element) for any dtype.
template <class F>
void with_element(DType dtype, const F& f) {
    switch (dtype) {
        case DType::boolean:
            return f(Bool{});
        case DType::u8:
            return f(Element<std::uint8_t, std::int64_t>{});
        case DType::i8:
            return f(Element<std::int8_t, std::int64_t>{});
        case DType::i16:
            return f(Element<std::int16_t, std::int64_t>{});
        case DType::i32:
            return f(Element<std::int32_t, std::int64_t>{});
        case DType::i64:
            return f(Element<std::int64_t, std::int64_t>{});
        default:
            return with_float(dtype, f);
    }
}

/// `count` elements `stride` apart, widened into `out`.
template <class E>
void widen(const typename E::Storage* from, std::int64_t stride, std::int64_t count,
           typename E::Acc* HWY_RESTRICT out) {
    if (stride == 1)
        for (std::int64_t i = 0; i < count; i++) out[i] = E::load(from[i]);
    else
        for (std::int64_t i = 0; i < count; i++) out[i] = E::load(from[i * stride]);
}
template <>
inline void widen<Half>(const std::uint16_t* from, std::int64_t stride, std::int64_t count, float* HWY_RESTRICT out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<float> wide;
    const hn::Rebind<hwy::float16_t, decltype(wide)> narrow;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
    std::int64_t i = 0;
    if (stride == 1)
        for (; i + lanes <= count; i += lanes)
            hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from + i))), wide,
                       out + i);
    for (; i < count; i++) out[i] = float_from_f16(from[i * stride]);
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Included once per instruction set: how the CPU's reductions read elements. See walk_cpu-inl.h.
#if defined(VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#undef VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#else
#define VKML_OPS_REDUCE_ELEMENTS_CPU_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vkml/core/dtype.h"
#include "vkml/core/float16.h"
#include "vkml/core/storage.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// A dtype as a reduction sees it: accumulated in A, whatever lies in memory. A value and not a type, so that a walk is
/// compiled for each A and not for each dtype.
template <class A>
struct Element {
    using Acc = A;
    std::int64_t size;  // bytes in memory
    bool in_place;      // memory holds A itself
    /// `count` elements `stride` apart, widened into `out`.
    void (*load)(const std::byte* from, std::int64_t stride, std::int64_t count, A* HWY_RESTRICT out);
    void (*narrow)(std::byte* to, const A* HWY_RESTRICT values, std::int64_t count);

    /// Elements [i, i + count) of y.
    void store(Address y, std::int64_t i, const A* values, std::int64_t count) const {
        auto* to = reinterpret_cast<std::byte*>(y) + i * size;
        if (in_place)
            std::memcpy(to, values, static_cast<std::size_t>(count) * sizeof(A));
        else
            narrow(to, values, count);
    }
};

/// How one dtype lies in memory and what it is accumulated in.
template <class S, class A>
struct Stored {
    using Storage = S;
    using Acc = A;
    static A load(S stored) { return static_cast<A>(stored); }
    static S store(A value) { return static_cast<S>(value); }
};
struct Bool : Stored<std::uint8_t, std::int64_t> {
    static std::int64_t load(std::uint8_t stored) { return stored != 0; }
    static std::uint8_t store(std::int64_t value) { return value != 0; }
};
struct Half : Stored<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_f16(stored); }
    static std::uint16_t store(float value) { return f16_from_float(value); }
};
struct Brain : Stored<std::uint16_t, float> {
    static float load(std::uint16_t stored) { return float_from_bf16(stored); }
    static std::uint16_t store(float value) { return bf16_from_float(value); }
};

/// Whole vectors of packed halves; returns how many elements that were.
inline std::int64_t load_halves(const std::uint16_t* from, std::int64_t count, float* HWY_RESTRICT out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<float> wide;
    const hn::Rebind<hwy::float16_t, decltype(wide)> narrow;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from + i))), wide,
                   out + i);
    return i;
}

template <class S>
void load_elements(const std::byte* bytes, std::int64_t stride, std::int64_t count, typename S::Acc* HWY_RESTRICT out) {
    const auto* from = reinterpret_cast<const typename S::Storage*>(bytes);
    std::int64_t i = 0;
    if constexpr (std::is_same_v<S, Half>)
        if (stride == 1) i = load_halves(from, count, out);
    if (stride == 1)
        for (; i < count; i++) out[i] = S::load(from[i]);
    else
        for (; i < count; i++) out[i] = S::load(from[i * stride]);
}
template <class S>
void narrow_elements(std::byte* to, const typename S::Acc* HWY_RESTRICT values, std::int64_t count) {
    auto* out = reinterpret_cast<typename S::Storage*>(to);
    for (std::int64_t i = 0; i < count; i++) out[i] = S::store(values[i]);
}
template <class S>
Element<typename S::Acc> element_of() {
    return {sizeof(typename S::Storage), std::is_same_v<typename S::Storage, typename S::Acc>, load_elements<S>,
            narrow_elements<S>};
}

/// Calls f(Element) for a floating dtype.
template <class F>
void with_float(DType dtype, const F& f) {
    if (dtype == DType::f64) return f(element_of<Stored<double, double>>());
    f(dtype == DType::f16    ? element_of<Half>()
      : dtype == DType::bf16 ? element_of<Brain>()
                             : element_of<Stored<float, float>>());
}
inline Element<std::int64_t> integer_element(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return element_of<Bool>();
        case DType::u8:
            return element_of<Stored<std::uint8_t, std::int64_t>>();
        case DType::i8:
            return element_of<Stored<std::int8_t, std::int64_t>>();
        case DType::i16:
            return element_of<Stored<std::int16_t, std::int64_t>>();
        case DType::i32:
            return element_of<Stored<std::int32_t, std::int64_t>>();
        default:
            return element_of<Stored<std::int64_t, std::int64_t>>();
    }
}
/// Calls f(Element) for any dtype.
template <class F>
void with_element(DType dtype, const F& f) {
    if (is_floating(dtype)) return with_float(dtype, f);
    f(integer_element(dtype));
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

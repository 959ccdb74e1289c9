#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "vkml/core/float16.h"
#include "vkml/ops/cast/cast_kernel.h"
#include "vkml/runtime/cpu/convert.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

// Types that C++ has no word for.
struct Half {
    std::uint16_t bits;
};
struct Brain {
    std::uint16_t bits;
};
struct Truth {
    std::uint8_t value;
};

float value_of(Half x) { return float_from_f16(x.bits); }
float value_of(Brain x) { return float_from_bf16(x.bits); }
int value_of(Truth x) { return x.value != 0; }
template <class T>
T value_of(T x) {
    return x;
}

/// An integer as f32 with its last bit set if anything was cut off: rounding to 16 bits is then correct.
float to_odd(std::int64_t x) {
    std::uint64_t u = x < 0 ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    const int shift = std::max(0, 40 - std::countl_zero(u));
    const std::uint64_t kept = (u >> shift) | ((u >> shift << shift) != u ? 1u : 0u);
    const float f = std::ldexp(static_cast<float>(kept), shift);
    return x < 0 ? -f : f;
}
float to_odd(float x) { return x; }
float to_odd(double x) { return float_to_odd(x); }
template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, std::int64_t>)
float to_odd(T x) {
    return to_odd(static_cast<std::int64_t>(x));
}

template <class To, class From>
To convert(From stored) {
    const auto x = value_of(stored);
    using X = decltype(x);
    if constexpr (std::is_same_v<To, Half>)
        return {f16_from_float(to_odd(x))};
    else if constexpr (std::is_same_v<To, Brain>)
        return {bf16_from_float(to_odd(x))};
    else if constexpr (std::is_same_v<To, Truth>)
        return {static_cast<std::uint8_t>(x != 0)};
    else if constexpr (std::is_floating_point_v<std::remove_const_t<X>> && std::is_integral_v<To>) {
        // Both bounds are powers of two or 0, so exact in either width.
        constexpr auto low = static_cast<X>(std::numeric_limits<To>::min());
        constexpr auto past = static_cast<X>(std::numeric_limits<To>::max() / 2 + 1) * 2;
        return x != x      ? To(0)
               : x < low   ? std::numeric_limits<To>::min()
               : x >= past ? std::numeric_limits<To>::max()
                           : static_cast<To>(x);
    } else {
        return static_cast<To>(x);
    }
}

template <class From, class To>
void convert_run(const From* in, std::int64_t step, To* out, std::int64_t n) {
    if (step == 1) {
        if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>)
            return cpu::f32_from_f16(reinterpret_cast<const std::uint16_t*>(in), out, n);
        else if constexpr (std::is_same_v<From, Brain> && std::is_same_v<To, float>)
            return cpu::f32_from_bf16(reinterpret_cast<const std::uint16_t*>(in), out, n);
        else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>)
            return cpu::f16_from_f32(in, reinterpret_cast<std::uint16_t*>(out), n);
        else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Brain>)
            return cpu::bf16_from_f32(in, reinterpret_cast<std::uint16_t*>(out), n);
        else
            for (std::int64_t i = 0; i < n; i++) out[i] = convert<To>(in[i]);
        return;
    }
    for (std::int64_t i = 0; i < n; i++) out[i] = convert<To>(in[i * step]);
}

template <class From, class To>
void cast_elements(const CastArgs& args, int rank) {
    const From* in = reinterpret_cast<const From*>(args.in);
    To* out = reinterpret_cast<To*>(args.out);
    const auto count = static_cast<std::int64_t>(args.count);
    if (rank == 0) {
        cpu::parallel_for(count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
            convert_run(in + begin, 1, out + begin, end - begin);
        });
        return;
    }
    const std::int64_t width = args.sizes[rank - 1], step = args.strides[rank - 1];
    cpu::parallel_for(count / width, std::max<std::int64_t>(1, cpu::kGrain / width),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t row = begin; row < end; row++) {
                              std::int64_t left = row, offset = 0;
                              for (int axis = rank - 2; axis >= 0; axis--) {
                                  offset += left % args.sizes[axis] * args.strides[axis];
                                  left /= args.sizes[axis];
                              }
                              convert_run(in + offset, step, out + row * width, width);
                          }
                      });
}

template <class From>
void cast_from(const CastArgs& args, DType to, int rank) {
    switch (to) {
        case DType::boolean:
            return cast_elements<From, Truth>(args, rank);
        case DType::u8:
            return cast_elements<From, std::uint8_t>(args, rank);
        case DType::i8:
            return cast_elements<From, std::int8_t>(args, rank);
        case DType::i16:
            return cast_elements<From, std::int16_t>(args, rank);
        case DType::i32:
            return cast_elements<From, std::int32_t>(args, rank);
        case DType::i64:
            return cast_elements<From, std::int64_t>(args, rank);
        case DType::f16:
            return cast_elements<From, Half>(args, rank);
        case DType::bf16:
            return cast_elements<From, Brain>(args, rank);
        case DType::f32:
            return cast_elements<From, float>(args, rank);
        default:
            return cast_elements<From, double>(args, rank);
    }
}

}  // namespace

void cast_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const CastArgs*>(raw);
    const auto to = static_cast<DType>(spec[1]);
    const int rank = static_cast<int>(spec[2]);
    switch (dtype) {
        case DType::boolean:
            return cast_from<Truth>(args, to, rank);
        case DType::u8:
            return cast_from<std::uint8_t>(args, to, rank);
        case DType::i8:
            return cast_from<std::int8_t>(args, to, rank);
        case DType::i16:
            return cast_from<std::int16_t>(args, to, rank);
        case DType::i32:
            return cast_from<std::int32_t>(args, to, rank);
        case DType::i64:
            return cast_from<std::int64_t>(args, to, rank);
        case DType::f16:
            return cast_from<Half>(args, to, rank);
        case DType::bf16:
            return cast_from<Brain>(args, to, rank);
        case DType::f32:
            return cast_from<float>(args, to, rank);
        default:
            return cast_from<double>(args, to, rank);
    }
}

void cast_wide_cpu(const void* raw, DType dtype, const Spec& spec, Grid grid) {
    const auto& wide = *static_cast<const CastWideArgs*>(raw);
    const CastArgs args{.in = wide.in, .out = wide.out, .count = wide.count, .strides = {}, .sizes = {}};
    cast_cpu(&args, dtype, Spec{spec[0], spec[1], 0}, grid);
}

}  // namespace vkml

#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vkml/core/float16.h"
#include "vkml/ops/elementwise/launch_internal.h"
#include "vkml/runtime/cpu/convert.h"
#include "vkml/runtime/cpu/parallel.h"

/// How the CPU runs an elementwise kernel: blocks that fit the first-level cache are brought into the value type,
/// worked on by one vector loop per operator, and stored. Packed operands of the value type are used where they lie.
namespace vkml::elementwise {

inline constexpr std::int64_t kBlock = 1024;

/// The vector loop of one operator on values of type T.
template <class T>
using Loop = void (*)(const T* a, const T* b, T* out, std::int64_t n, T p, T q);

/// Storage of a dtype and the type it computes in.
template <DType d>
struct Element;
template <>
struct Element<DType::boolean> {
    using Storage = std::uint8_t;
    using Value = std::int32_t;
};
template <>
struct Element<DType::u8> {
    using Storage = std::uint8_t;
    using Value = std::int32_t;
};
template <>
struct Element<DType::i8> {
    using Storage = std::int8_t;
    using Value = std::int32_t;
};
template <>
struct Element<DType::i16> {
    using Storage = std::int16_t;
    using Value = std::int32_t;
};
template <>
struct Element<DType::i32> {
    using Storage = std::int32_t;
    using Value = std::int32_t;
};
template <>
struct Element<DType::i64> {
    using Storage = std::int64_t;
    using Value = std::int64_t;
};
template <>
struct Element<DType::f16> {
    using Storage = std::uint16_t;
    using Value = float;
};
template <>
struct Element<DType::bf16> {
    using Storage = std::uint16_t;
    using Value = float;
};
template <>
struct Element<DType::f32> {
    using Storage = float;
    using Value = float;
};
template <>
struct Element<DType::f64> {
    using Storage = double;
    using Value = double;
};

/// Brings n packed elements into the value type.
template <DType d>
void widen(const typename Element<d>::Storage* in, typename Element<d>::Value* out, std::int64_t n) {
    if constexpr (d == DType::f16)
        cpu::f32_from_f16(in, out, n);
    else if constexpr (d == DType::bf16)
        cpu::f32_from_bf16(in, out, n);
    else if constexpr (d == DType::boolean)
        for (std::int64_t i = 0; i < n; i++) out[i] = in[i] != 0;
    else
        for (std::int64_t i = 0; i < n; i++) out[i] = in[i];
}

template <DType d>
void narrow(const typename Element<d>::Value* in, typename Element<d>::Storage* out, std::int64_t n) {
    if constexpr (d == DType::f16)
        cpu::f16_from_f32(in, out, n);
    else if constexpr (d == DType::bf16)
        cpu::bf16_from_f32(in, out, n);
    else if constexpr (d == DType::boolean)
        for (std::int64_t i = 0; i < n; i++) out[i] = in[i] != 0;
    else
        for (std::int64_t i = 0; i < n; i++) out[i] = static_cast<typename Element<d>::Storage>(in[i]);
}

/// Copies past the caches: the lines of a large output need not be read first. `out` is aligned to 16 bytes.
void stream_out(const void* in, void* out, std::int64_t bytes);
inline constexpr std::int64_t kStreamFrom = std::int64_t{1} << 24;  // bytes of output, well past the cache

/// One operand: gives the values of consecutive outputs.
template <DType d>
class Operand {
    using Storage = typename Element<d>::Storage;
    using Value = typename Element<d>::Value;

  public:
    Operand(Address address, OperandForm form, const std::uint32_t* sizes, const std::int32_t* strides, int rank,
            Value number)
        : data_(reinterpret_cast<const Storage*>(address)),
          form_(form),
          sizes_(sizes),
          strides_(strides),
          rank_(rank),
          number_(number) {}

    /// Elements [i, i + n), n <= kBlock: where they lie, or in `buffer`. `fresh` is true for the first block of a
    /// thread.
    const Value* get(std::int64_t i, std::int64_t n, Value* buffer, bool fresh) const {
        if (form_ == OperandForm::number) {
            if (fresh) std::fill_n(buffer, kBlock, number_);
            return buffer;
        }
        if (form_ == OperandForm::strided) {
            gather(i, n, buffer);
            return buffer;
        }
        if constexpr (std::is_same_v<Storage, Value>)
            return data_ + i;
        else
            widen<d>(data_ + i, buffer, n);
        return buffer;
    }

  private:
    void gather(std::int64_t i, std::int64_t n, Value* out) const {
        std::int64_t index[6] = {}, offset = 0, left = i;
        for (int axis = rank_ - 1; axis >= 0; axis--) {
            index[axis] = left % sizes_[axis];
            left /= sizes_[axis];
            offset += index[axis] * strides_[axis];
        }
        const int last = rank_ - 1;
        const std::int64_t step = strides_[last];
        while (n > 0) {
            const std::int64_t run = std::min<std::int64_t>(n, sizes_[last] - index[last]);
            gather_run(data_ + offset, step, run, out);
            out += run;
            n -= run;
            offset += run * step;
            index[last] += run;
            for (int axis = last; axis > 0 && index[axis] == sizes_[axis]; axis--) {
                offset += strides_[axis - 1] - static_cast<std::int64_t>(sizes_[axis]) * strides_[axis];
                index[axis] = 0;
                index[axis - 1]++;
            }
        }
    }

    static void gather_run(const Storage* in, std::int64_t step, std::int64_t n, Value* out) {
        if (step == 1) return widen<d>(in, out, n);
        if (step == 0) {
            Value value;
            widen<d>(in, &value, 1);
            std::fill_n(out, n, value);
            return;
        }
        if constexpr (std::is_same_v<Storage, Value>) {
            for (std::int64_t i = 0; i < n; i++) out[i] = in[i * step];
        } else {
            Storage packed[kBlock];
            for (std::int64_t i = 0; i < n; i++) packed[i] = in[i * step];
            widen<d>(packed, out, n);
        }
    }

    const Storage* data_;
    OperandForm form_;
    const std::uint32_t* sizes_;
    const std::int32_t* strides_;
    int rank_;
    Value number_;
};

/// Looks at a block of b before the operator sees it: integer division reports zeros.
template <class T>
using Inspect = void (*)(const T* b, std::int64_t n, const ElementwiseArgs& args);

template <class T>
T number_of(std::uint64_t bits) {
    if constexpr (sizeof(T) == 8)
        return std::bit_cast<T>(bits);
    else
        return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
}

/// Runs a loop over the whole output. `in` and `result` are the dtypes of operands and output.
template <DType in, DType result>
void run(const ElementwiseArgs& args, const Spec& spec, Loop<typename Element<in>::Value> loop,
         Inspect<typename Element<in>::Value> inspect = nullptr) {
    using T = typename Element<in>::Value;
    using Out = typename Element<result>::Storage;
    const T p = number_of<T>(args.p), q = number_of<T>(args.q);
    const int rank = static_cast<int>(spec[4]);
    const Operand<in> a(args.a, static_cast<OperandForm>(spec[2]), args.sizes, args.a_strides, rank, p);
    const Operand<in> b(args.b, static_cast<OperandForm>(spec[3]), args.sizes, args.b_strides, rank, p);
    Out* out = reinterpret_cast<Out*>(args.out);
    const auto count = static_cast<std::int64_t>(args.count);
    const bool direct = std::is_same_v<Out, T>;
    const bool streamed = direct && spec[5] != 0 && count * static_cast<std::int64_t>(sizeof(Out)) >= kStreamFrom;
    // Ranges begin at multiples of a block, so that every block keeps the output's alignment.
    cpu::parallel_for((count + kBlock - 1) / kBlock, cpu::kGrain / kBlock, [&](std::int64_t first, std::int64_t last) {
        alignas(64) T a_buffer[kBlock];
        alignas(64) T b_buffer[kBlock];
        alignas(64) T out_buffer[kBlock];
        for (std::int64_t block = first; block < last; block++) {
            const std::int64_t i = block * kBlock, n = std::min(kBlock, count - i);
            const T* x = a.get(i, n, a_buffer, block == first);
            const T* y = b.get(i, n, b_buffer, block == first);
            if (inspect) inspect(y, n, args);
            if constexpr (std::is_same_v<Out, T>) {
                T* target = streamed ? out_buffer : out + i;
                loop(x, y, target, n, p, q);
                if (streamed) stream_out(out_buffer, out + i, n * static_cast<std::int64_t>(sizeof(Out)));
            } else {
                loop(x, y, out_buffer, n, p, q);
                if constexpr (result == DType::boolean)
                    for (std::int64_t k = 0; k < n; k++) out[i + k] = out_buffer[k] != 0;
                else
                    narrow<result>(out_buffer, out + i, n);
            }
        }
    });
}

/// Calls f with the dtype as a constant.
template <class F>
void with_element(DType dtype, const F& f) {
    const auto call = [&]<DType d>() { f(std::integral_constant<DType, d>()); };
    switch (dtype) {
        case DType::boolean:
            return call.template operator()<DType::boolean>();
        case DType::u8:
            return call.template operator()<DType::u8>();
        case DType::i8:
            return call.template operator()<DType::i8>();
        case DType::i16:
            return call.template operator()<DType::i16>();
        case DType::i32:
            return call.template operator()<DType::i32>();
        case DType::i64:
            return call.template operator()<DType::i64>();
        case DType::f16:
            return call.template operator()<DType::f16>();
        case DType::bf16:
            return call.template operator()<DType::bf16>();
        case DType::f32:
            return call.template operator()<DType::f32>();
        default:
            return call.template operator()<DType::f64>();
    }
}

/// Whether an operator has a loop over values of type T.
template <class T>
constexpr bool works_on(Takes takes) {
    constexpr bool floating = std::is_floating_point_v<T>;
    return takes == Takes::any || takes == Takes::number ||
           floating == (takes == Takes::real || takes == Takes::floating);
}

}  // namespace vkml::elementwise

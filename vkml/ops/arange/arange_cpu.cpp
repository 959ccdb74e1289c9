#include <bit>

#include "vkml/core/float16.h"
#include "vkml/ops/arange/arange_kernel.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml {
namespace {

template <class T, class Number, class Store>
void fill_range(const ArangeArgs& args, const Store& store) {
    T* output = reinterpret_cast<T*>(args.output);
    const Number start = std::bit_cast<Number>(args.start), stop = std::bit_cast<Number>(args.stop),
                 step = std::bit_cast<Number>(args.step);
    cpu::parallel_for(static_cast<std::int64_t>(args.count), cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; n++) {
            const auto i = static_cast<std::uint64_t>(n);
            output[n] = store(i < args.turn ? start + static_cast<Number>(i) * step
                                            : stop - static_cast<Number>(args.count - 1 - i) * step);
        }
    });
}

template <class T>
void integers(const ArangeArgs& args) {
    fill_range<T, std::uint64_t>(args, [](std::uint64_t value) { return static_cast<T>(value); });
}

}  // namespace

void arange_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const ArangeArgs*>(raw);
    switch (dtype) {
        case DType::f64:
            return fill_range<double, double>(args, [](double value) { return value; });
        case DType::f32:
            return fill_range<float, double>(args, [](double value) { return static_cast<float>(value); });
        // By way of f32, as the shader does.
        case DType::f16:
            return fill_range<std::uint16_t, double>(
                args, [](double value) { return f16_from_float(static_cast<float>(value)); });
        case DType::bf16:
            return fill_range<std::uint16_t, double>(
                args, [](double value) { return bf16_from_float(static_cast<float>(value)); });
        default:
            break;
    }
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

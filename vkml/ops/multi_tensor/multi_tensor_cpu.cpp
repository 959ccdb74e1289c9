#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/multi_tensor/multi_tensor_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway includes this file once per instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "vkml/ops/multi_tensor/multi_tensor_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace vkml {
namespace HWY_NAMESPACE {
namespace {

/// One workgroup's stretch of a tensor.
struct Stretch {
    const std::uint64_t* entry;
    std::int64_t begin, end, group;
};

/// Calls body(stretch) for every workgroup of the pass, in parallel.
template <class Body>
void for_each_group(const MultiTensorArgs& args, const Body& body) {
    const auto* table = reinterpret_cast<const std::uint64_t*>(args.table);
    cpu::parallel_for(args.groups, cpu::kGrain / kTableGroupElements, [&](std::int64_t first, std::int64_t last) {
        const std::uint64_t* entry = table;
        for (std::int64_t g = first; g < last; g++) {
            const auto* end = table + std::size_t{args.entries} * kTableWords;
            while (entry + kTableWords < end && static_cast<std::int64_t>(entry[kTableWords + kTableFirstGroup]) <= g)
                entry += kTableWords;
            const std::int64_t begin =
                (g - static_cast<std::int64_t>(entry[kTableFirstGroup])) * std::int64_t{kTableGroupElements};
            const auto count = static_cast<std::int64_t>(entry[kTableCount]);
            body(Stretch{entry, begin, std::min(begin + std::int64_t{kTableGroupElements}, count), g});
        }
    });
}

/// Sixteen sums side by side: a loop a compiler can vectorise without reordering.
template <class E>
double squares_of(const E* x, std::int64_t n) {
    double sums[16] = {};
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) {
            const double v = E::load(x[i + k]);
            sums[k] += v * v;
        }
    for (; i < n; i++) sums[i % 16] += static_cast<double>(E::load(x[i])) * E::load(x[i]);
    double sum = 0;
    for (const double s : sums) sum += s;
    return sum;
}

void squares(const MultiTensorArgs& args, DType dtype) {
    cpu::for_float(dtype, [&](auto element) {
        using E = decltype(element);
        auto* sums = reinterpret_cast<typename E::Value*>(args.sums);
        for_each_group(args, [&](const Stretch& s) {
            const auto* x = reinterpret_cast<const E*>(s.entry[0]);
            sums[s.group] = static_cast<typename E::Value>(squares_of<E>(x + s.begin, s.end - s.begin));
        });
    });
}

void scale(const MultiTensorArgs& args, DType dtype) {
    cpu::for_float(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        const V factor = *reinterpret_cast<const V*>(args.factor);
        for_each_group(args, [&](const Stretch& s) {
            auto* x = reinterpret_cast<E*>(s.entry[0]);
            bool finite = true;
            for (std::int64_t i = s.begin; i < s.end; i++) {
                const V v = E::load(x[i]);
                finite &= v - v == 0;
                x[i] = E::store(v * factor);
            }
            if (!finite && args.found)
                std::atomic_ref(*reinterpret_cast<std::uint32_t*>(args.found)).store(1, std::memory_order_relaxed);
        });
    });
}

void lerp(const MultiTensorArgs& args, DType dtype) {
    cpu::for_float(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        const V weight = *reinterpret_cast<const V*>(args.factor);
        const bool near = weight < V(0.5);
        for_each_group(args, [&](const Stretch& s) {
            auto* target = reinterpret_cast<E*>(s.entry[0]);
            const auto* source = reinterpret_cast<const E*>(s.entry[1]);
            for (std::int64_t i = s.begin; i < s.end; i++) {
                const V a = E::load(target[i]), b = E::load(source[i]);
                target[i] = E::store(near ? a + weight * (b - a) : b - (b - a) * (V(1) - weight));
            }
        });
    });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace vkml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {

HWY_EXPORT(squares);
HWY_EXPORT(scale);
HWY_EXPORT(lerp);

template <class V>
void norm(const MultiNormArgs& args) {
    const auto* sums = reinterpret_cast<const V*>(args.sums);
    double total = 0;
    for (std::uint64_t i = 0; i < args.count; i++) total += sums[i];
    *reinterpret_cast<V*>(args.norm) = static_cast<V>(std::sqrt(total));
}

}  // namespace

void multi_squares_cpu(const void* args, DType dtype, const Spec&, Grid) {
    HWY_DYNAMIC_DISPATCH(squares)(*static_cast<const MultiTensorArgs*>(args), dtype);
}
void multi_scale_cpu(const void* args, DType dtype, const Spec&, Grid) {
    HWY_DYNAMIC_DISPATCH(scale)(*static_cast<const MultiTensorArgs*>(args), dtype);
}
void multi_lerp_cpu(const void* args, DType dtype, const Spec&, Grid) {
    HWY_DYNAMIC_DISPATCH(lerp)(*static_cast<const MultiTensorArgs*>(args), dtype);
}
void multi_norm_cpu(const void* args, DType dtype, const Spec&, Grid) {
    if (dtype == DType::f64)
        norm<double>(*static_cast<const MultiNormArgs*>(args));
    else
        norm<float>(*static_cast<const MultiNormArgs*>(args));
}

}  // namespace vkml
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "vkml/ops/pool2d/pool2d_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/stored.h"

namespace vkml {
namespace {

using cpu::for_float, cpu::Half, cpu::Bfloat, cpu::Plain;

template <class V>
bool is_nan(V value) {
    if constexpr (std::is_floating_point_v<V>) return std::isnan(value);
    return false;
}

template <class V>
V lowest() {
    if constexpr (std::is_floating_point_v<V>) return -std::numeric_limits<V>::infinity();
    return std::numeric_limits<V>::min();
}

/// body(plane) for every plane, in parallel.
template <class Args, class Body>
void for_planes(const Args& args, const Body& body) {
    const std::int64_t work = std::int64_t{args.out_h} * args.out_w * args.kernel_h * args.kernel_w;
    cpu::parallel_for(args.planes, std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, work)),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t plane = begin; plane < end; plane++) body(plane);
                      });
}

template <class T>
void max_pool(const Pool2dArgs& a) {
    using V = typename T::Value;
    for_planes(a, [&](std::int64_t plane) {
        const T* image =
            reinterpret_cast<const T*>(a.from) + plane / a.channels * a.n_stride + plane % a.channels * a.c_stride;
        std::int64_t at = plane * a.out_h * a.out_w;
        for (std::int64_t y = 0; y < a.out_h; y++)
            for (std::int64_t x = 0; x < a.out_w; x++, at++) {
                V best = lowest<V>();
                std::int64_t found = -1;
                for (std::int64_t i = 0; i < a.kernel_h; i++) {
                    const std::int64_t h = y * a.stride_h - a.padding_h + i * a.dilation_h;
                    if (h < 0 || h >= a.h) continue;
                    for (std::int64_t j = 0; j < a.kernel_w; j++) {
                        const std::int64_t w = x * a.stride_w - a.padding_w + j * a.dilation_w;
                        if (w < 0 || w >= a.w) continue;
                        const V value = T::load(image[h * a.h_stride + w * a.w_stride]);
                        if (found < 0 || is_nan(value) || value > best) best = value, found = h * a.w + w;
                    }
                }
                reinterpret_cast<T*>(a.to)[at] = T::store(best);
                if (a.indices) reinterpret_cast<std::int64_t*>(a.indices)[at] = found;
            }
    });
}

struct Extent {
    std::int64_t start, end, padded;
};
Extent extent_of(std::int64_t position, std::int64_t stride, std::int64_t padding, std::int64_t kernel,
                 std::int64_t extent) {
    const std::int64_t start = position * stride - padding, end = std::min(start + kernel, extent + padding);
    return {std::max<std::int64_t>(start, 0), std::min(end, extent), end - start};
}

template <class V, class Args>
V divisor_of(const Args& a, const Extent& h, const Extent& w) {
    if (a.divisor == 0) return static_cast<V>(h.padded * w.padded);
    if (a.divisor == kRealElements) return static_cast<V>((h.end - h.start) * (w.end - w.start));
    return static_cast<V>(a.divisor);
}

template <class T>
void avg_pool(const Pool2dArgs& a) {
    using V = typename T::Value;
    for_planes(a, [&](std::int64_t plane) {
        const T* image =
            reinterpret_cast<const T*>(a.from) + plane / a.channels * a.n_stride + plane % a.channels * a.c_stride;
        T* to = reinterpret_cast<T*>(a.to) + plane * a.out_h * a.out_w;
        for (std::int64_t y = 0; y < a.out_h; y++)
            for (std::int64_t x = 0; x < a.out_w; x++, to++) {
                const Extent rows = extent_of(y, a.stride_h, a.padding_h, a.kernel_h, a.h);
                const Extent columns = extent_of(x, a.stride_w, a.padding_w, a.kernel_w, a.w);
                V sum = 0;
                for (std::int64_t h = rows.start; h < rows.end; h++) {
                    V row = 0;
                    for (std::int64_t w = columns.start; w < columns.end; w++)
                        row += T::load(image[h * a.h_stride + w * a.w_stride]);
                    sum += row;
                }
                *to = T::store(sum / divisor_of<V>(a, rows, columns));
            }
    });
}

/// Windows from last to first: each element then gets its terms in ascending order of the taps, as on the GPU.
template <class T, class Add>
void spread(const Pool2dBackwardArgs& a, const Add& add) {
    using V = typename T::Value;
    for_planes(a, [&](std::int64_t plane) {
        std::vector<V> sums(static_cast<std::size_t>(a.h) * a.w, V{0});
        const T* g = reinterpret_cast<const T*>(a.from) + plane * a.out_h * a.out_w;
        for (std::int64_t y = a.out_h - 1; y >= 0; y--)
            for (std::int64_t x = a.out_w - 1; x >= 0; x--) add(sums.data(), plane, y, x, T::load(g[y * a.out_w + x]));
        T* to = reinterpret_cast<T*>(a.to) + plane * a.h * a.w;
        for (std::size_t i = 0; i < sums.size(); i++) to[i] = T::store(sums[i]);
    });
}

template <class T>
void max_pool_backward(const Pool2dBackwardArgs& a) {
    using V = typename T::Value;
    spread<T>(a, [&](V* sums, std::int64_t plane, std::int64_t y, std::int64_t x, V g) {
        const std::int64_t found =
            reinterpret_cast<const std::int64_t*>(a.indices)[(plane * a.out_h + y) * a.out_w + x];
        if (found >= 0) sums[found] += g;
    });
}

template <class T>
void avg_pool_backward(const Pool2dBackwardArgs& a) {
    using V = typename T::Value;
    spread<T>(a, [&](V* sums, std::int64_t, std::int64_t y, std::int64_t x, V g) {
        const Extent rows = extent_of(y, a.stride_h, a.padding_h, a.kernel_h, a.h);
        const Extent columns = extent_of(x, a.stride_w, a.padding_w, a.kernel_w, a.w);
        const V share = g / divisor_of<V>(a, rows, columns);
        for (std::int64_t h = rows.start; h < rows.end; h++)
            for (std::int64_t w = columns.start; w < columns.end; w++) sums[h * a.w + w] += share;
    });
}

}  // namespace

void max_pool2d_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const Pool2dArgs*>(raw);
    switch (dtype) {
        case DType::i64:
            return max_pool<Plain<std::int64_t>>(args);
        case DType::i32:
            return max_pool<Plain<std::int32_t>>(args);
        case DType::i16:
            return max_pool<Plain<std::int16_t>>(args);
        case DType::i8:
            return max_pool<Plain<std::int8_t>>(args);
        case DType::u8:
            return max_pool<Plain<std::uint8_t>>(args);
        default:
            return for_float(dtype, [&](auto t) { max_pool<decltype(t)>(args); });
    }
}

void avg_pool2d_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    for_float(dtype, [&](auto t) { avg_pool<decltype(t)>(*static_cast<const Pool2dArgs*>(raw)); });
}

void max_pool2d_backward_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    for_float(dtype, [&](auto t) { max_pool_backward<decltype(t)>(*static_cast<const Pool2dBackwardArgs*>(raw)); });
}

void avg_pool2d_backward_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    for_float(dtype, [&](auto t) { avg_pool_backward<decltype(t)>(*static_cast<const Pool2dBackwardArgs*>(raw)); });
}

}  // namespace vkml

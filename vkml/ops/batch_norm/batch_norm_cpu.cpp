#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "vkml/ops/batch_norm/batch_norm_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/stored.h"

namespace vkml {
namespace {

using cpu::for_float, cpu::Half, cpu::Bfloat, cpu::Plain;

template <class V>
const V* values(Address p) {
    return reinterpret_cast<const V*>(p);
}

/// A plane of x.
template <class T>
const T* plane_of(const BatchNormArgs& a, std::int64_t n, std::int64_t c) {
    return reinterpret_cast<const T*>(a.x) + n * a.n_stride + c * a.c_stride;
}

/// body(plane, sample, channel) for every plane, in parallel.
template <class Body>
void for_planes(const BatchNormArgs& a, const Body& body) {
    const std::int64_t planes = std::int64_t{a.batch} * a.channels;
    cpu::parallel_for(planes, std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, a.plane)),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t p = begin; p < end; p++) body(p, p / a.channels, p % a.channels);
                      });
}

/// body(channel) for every channel, in parallel.
template <class Body>
void for_channels(const BatchNormArgs& a, const Body& body) {
    const std::int64_t work = std::int64_t{a.batch} * a.plane;
    cpu::parallel_for(a.channels, std::max<std::int64_t>(1, cpu::kGrain / std::max<std::int64_t>(1, work)),
                      [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t c = begin; c < end; c++) body(c);
                      });
}

constexpr std::int64_t kLanes = 16;

/// Sums of up to kLanes interleaved terms, so that the compiler can use vectors without changing their order.
template <class V>
V total(const std::array<V, kLanes>& lanes) {
    std::array<V, kLanes> s = lanes;
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
        for (std::int64_t i = 0; i < half; i++) s[static_cast<std::size_t>(i)] += s[static_cast<std::size_t>(i + half)];
    return s[0];
}

template <class V, class Term>
V sum_of(std::int64_t n, const Term& term) {
    std::array<V, kLanes> lanes{};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t j = 0; j < kLanes; j++) lanes[static_cast<std::size_t>(j)] += term(i + j);
    for (; i < n; i++) lanes[static_cast<std::size_t>(i % kLanes)] += term(i);
    return total(lanes);
}

}  // namespace

void batch_norm_apply_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& a = *static_cast<const BatchNormArgs*>(raw);
    const bool relative = spec[1] != 0;
    for_float(dtype, [&](auto t) {
        using T = decltype(t);
        using V = typename T::Value;
        for_planes(a, [&](std::int64_t p, std::int64_t n, std::int64_t c) {
            const T* x = plane_of<T>(a, n, c);
            T* y = reinterpret_cast<T*>(a.y) + p * a.plane;
            const V first = relative ? T::load(*plane_of<T>(a, 0, c)) : V{0}, mean = values<V>(a.mean)[c];
            const V scale = values<V>(a.rstd)[c] * (a.weight ? values<V>(a.weight)[c] : V{1});
            const V bias = a.bias ? values<V>(a.bias)[c] : V{0};
            for (std::int64_t i = 0; i < a.plane; i++)
                y[i] = T::store(((T::load(x[i * a.x_stride]) - first) - mean) * scale + bias);
        });
    });
}

void batch_norm_backward_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& a = *static_cast<const BatchNormArgs*>(raw);
    const bool relative = spec[1] != 0, centred = spec[2] != 0;
    for_float(dtype, [&](auto t) {
        using T = decltype(t);
        using V = typename T::Value;
        for_planes(a, [&](std::int64_t p, std::int64_t n, std::int64_t c) {
            const T* x = plane_of<T>(a, n, c);
            const T* g = reinterpret_cast<const T*>(a.gradient) + p * a.plane;
            T* y = reinterpret_cast<T*>(a.y) + p * a.plane;
            const V first = relative ? T::load(*plane_of<T>(a, 0, c)) : V{0}, mean = values<V>(a.mean)[c];
            const V rstd = values<V>(a.rstd)[c], scale = rstd * (a.weight ? values<V>(a.weight)[c] : V{1});
            const V count = static_cast<V>(a.batch) * static_cast<V>(a.plane);
            const V own = centred ? values<V>(a.sums)[c] / count : V{0};
            const V slope = centred ? values<V>(a.sums)[a.channels + c] / count : V{0};
            for (std::int64_t i = 0; i < a.plane; i++) {
                V v = T::load(g[i]);
                if (centred) v = v - own - (((T::load(x[i * a.x_stride]) - first) - mean) * rstd) * slope;
                y[i] = T::store(v * scale);
            }
        });
    });
}

void batch_norm_statistics_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& a = *static_cast<const BatchNormArgs*>(raw);
    for_float(dtype, [&](auto t) {
        using T = decltype(t);
        using V = typename T::Value;
        for_channels(a, [&](std::int64_t c) {
            const V first = T::load(*plane_of<T>(a, 0, c));
            double mean = 0, squares = 0, count = 0;
            for (std::int64_t n = 0; n < a.batch; n++) {
                // A piece stays in the cache between its two passes.
                constexpr std::int64_t kPiece = 4096;
                for (std::int64_t from = 0; from < a.plane; from += kPiece) {
                    const std::int64_t size = std::min<std::int64_t>(kPiece, a.plane - from);
                    const T* x = plane_of<T>(a, n, c) + from * a.x_stride;
                    const V middle =
                        sum_of<V>(size, [&](std::int64_t i) { return T::load(x[i * a.x_stride]) - first; }) /
                        static_cast<V>(size);
                    const V part = sum_of<V>(size, [&](std::int64_t i) {
                        const V d = (T::load(x[i * a.x_stride]) - first) - middle;
                        return d * d;
                    });
                    const double all = count + static_cast<double>(size), share = static_cast<double>(size) / all,
                                 d = static_cast<double>(middle) - mean;
                    squares += static_cast<double>(part) + d * (count * share) * d;
                    mean += d * share, count = all;
                }
            }
            V* to = reinterpret_cast<V*>(a.partial) + c * 3;
            to[0] = static_cast<V>(mean), to[1] = static_cast<V>(squares), to[2] = static_cast<V>(count);
        });
    });
}

void batch_norm_sums_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& a = *static_cast<const BatchNormArgs*>(raw);
    const bool relative = spec[1] != 0;
    for_float(dtype, [&](auto t) {
        using T = decltype(t);
        using V = typename T::Value;
        for_channels(a, [&](std::int64_t c) {
            const V first = relative ? T::load(*plane_of<T>(a, 0, c)) : V{0};
            const V mean = values<V>(a.mean)[c], rstd = values<V>(a.rstd)[c];
            double sum = 0, product = 0;
            for (std::int64_t n = 0; n < a.batch; n++) {
                const T* x = plane_of<T>(a, n, c);
                const T* g = reinterpret_cast<const T*>(a.gradient) + (n * a.channels + c) * a.plane;
                sum += static_cast<double>(sum_of<V>(a.plane, [&](std::int64_t i) { return T::load(g[i]); }));
                product += static_cast<double>(sum_of<V>(a.plane, [&](std::int64_t i) {
                    return T::load(g[i]) * (((T::load(x[i * a.x_stride]) - first) - mean) * rstd);
                }));
            }
            V* to = reinterpret_cast<V*>(a.partial) + c * 3;
            to[0] = static_cast<V>(sum), to[1] = static_cast<V>(product), to[2] = V{0};
        });
    });
}

void batch_norm_fold_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& a = *static_cast<const BatchNormFoldArgs*>(raw);
    for_float(dtype, [&](auto t) {
        using T = decltype(t);
        using V = typename T::Value;
        const V eps = static_cast<V>(a.eps_high) + static_cast<V>(a.eps_low);
        for (std::int64_t c = 0; c < a.channels; c++) {  // on the CPU a channel is one part
            const V* from = values<V>(a.partial) + c * 3;
            if (a.sums) {
                V* to = reinterpret_cast<V*>(a.sums) + c;
                to[0] = from[0], to[a.channels] = from[1];
                continue;
            }
            const V variance = from[1] / from[2];
            reinterpret_cast<V*>(a.relative)[c] = from[0];
            reinterpret_cast<V*>(a.rstd)[c] = V{1} / std::sqrt(variance + eps);
            reinterpret_cast<V*>(a.mean)[c] = T::load(reinterpret_cast<const T*>(a.x)[c * a.c_stride]) + from[0];
            reinterpret_cast<V*>(a.variance)[c] = variance;
        }
    });
}

}  // namespace vkml

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/reduce/moments_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/walk_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// Mean and sum of squared deviations of n values; joined after Chan, Golub and LeVeque.
struct Moments {
    double mean, squares, n;
};

template <class A>
struct MomentsFold {
    using Acc = A;
    using State = Moments;
    static constexpr std::int64_t kLanes = 32;

    const ReduceArgs& args;
    Element<Acc> element;
    bool root;

    static State identity() { return {0, 0, 0}; }
    static State merge(const State& a, const State& b) {
        if (b.n == 0) return a;
        if (a.n == 0) return b;
        const double n = a.n + b.n, share = b.n / n, d = b.mean - a.mean;
        return {a.mean + d * share, a.squares + b.squares + d * d * (a.n * share), n};
    }
    /// Sum over the block of what `term` makes of an element.
    template <class Term>
    static double total(const Acc* HWY_RESTRICT v, std::int64_t n, const Term& term) {
        alignas(64) double lanes[kLanes] = {};
        std::int64_t i = 0;
        for (; i + kLanes <= n; i += kLanes)
            for (std::int64_t l = 0; l < kLanes; l++) lanes[l] += term(static_cast<double>(v[i + l]));
        for (std::int64_t l = 0; i < n; i++, l++) lanes[l] += term(static_cast<double>(v[i]));
        for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
            for (std::int64_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
        return lanes[0];
    }
    static State block(const Acc* v, std::int64_t n, std::int64_t) {
        const double mean = total(v, n, [](double x) { return x; }) / static_cast<double>(n);
        const double squares = total(v, n, [mean](double x) { return (x - mean) * (x - mean); });
        return {mean, squares, static_cast<double>(n)};
    }
    static void rows(State* HWY_RESTRICT s, const Acc* const v[4], int count, std::int64_t n, std::int64_t) {
        for (std::int64_t i = 0; i < n; i++) {
            double sum = 0, squares = 0;
            for (int j = 0; j < count; j++) sum += static_cast<double>(v[j][i]);
            const double mean = sum / count;
            for (int j = 0; j < count; j++)
                squares += (static_cast<double>(v[j][i]) - mean) * (static_cast<double>(v[j][i]) - mean);
            s[i] = merge(s[i], {mean, squares, static_cast<double>(count)});
        }
    }
    void finish(std::int64_t i, const State* s, std::int64_t n) const {
        Acc value[kTile];
        const auto divisor = static_cast<double>(divisor_of<Acc>(args));
        for (std::int64_t k = 0; k < n; k++) {
            const double variance = s[k].squares / divisor;
            value[k] = static_cast<Acc>(root ? std::sqrt(variance) : variance);
        }
        element.store(args.y, i, value, n);
    }
};

void moments(const ReduceArgs& args, DType dtype, const Spec& spec, bool columns) {
    with_float(dtype, [&]<class A>(const Element<A>& element) {
        walk(args, spec, columns, MomentsFold<A>{args, element, spec[3] == 1});
    });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
VKML_REDUCE_ENTRIES(moments)
}  // namespace vkml
#endif

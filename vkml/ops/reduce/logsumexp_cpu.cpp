#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/reduce/logsumexp_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// After foreach_target.h, which includes it once per instruction set.
#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/walk_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The largest value, and the sum of exp(value - peak). A NaN is never the peak and makes the sum NaN.
template <class A>
struct LogSumExpFold {
    using Acc = A;
    struct State {
        Acc peak;
        double sum;
    };

    const ReduceArgs& args;
    Element<Acc> element;

    // The lowest finite number and not -infinity, so that exp(-infinity - peak) is 0.
    static State identity() { return {std::numeric_limits<Acc>::lowest(), 0}; }
    /// exp(v - peak), also where both are the same infinity.
    static double term(Acc v, Acc peak) {
        return v == peak ? 1.0
               : v != v  ? static_cast<double>(v)
                         : std::exp(static_cast<double>(v) - static_cast<double>(peak));
    }
    static State merge(const State& a, const State& b) {
        const Acc peak = b.peak > a.peak ? b.peak : a.peak;
        return {peak, a.sum * term(a.peak, peak) + b.sum * term(b.peak, peak)};
    }
    static State block(const Acc* HWY_RESTRICT v, std::int64_t n, std::int64_t) {
        State s = identity();
        for (std::int64_t i = 0; i < n; i++) s.peak = v[i] > s.peak ? v[i] : s.peak;
        if (std::isinf(s.peak)) {
            for (std::int64_t i = 0; i < n; i++) s.sum += term(v[i], s.peak);
            return s;
        }
        // Sixteen lanes on every instruction set, so that sums have the same bits there.
        const hn::CappedTag<Acc, 16> d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        constexpr std::int64_t kLanes = 16;
        alignas(64) Acc padded[kLanes], sums[kLanes] = {};
        const auto peak = hn::Set(d, s.peak);
        for (std::int64_t i = 0; i < n; i += kLanes) {
            const Acc* from = v + i;
            if (n - i < kLanes) {  // exp(-infinity) adds nothing
                for (std::int64_t l = 0; l < kLanes; l++)
                    padded[l] = i + l < n ? v[i + l] : -std::numeric_limits<Acc>::infinity();
                from = padded;
            }
            for (std::int64_t l = 0; l < kLanes; l += lanes)
                hn::Store(hn::Add(hn::Load(d, sums + l), exponential(d, hn::Sub(hn::LoadU(d, from + l), peak))), d,
                          sums + l);
        }
        for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
            for (std::int64_t l = 0; l < half; l++) sums[l] += sums[l + half];
        s.sum = static_cast<double>(sums[0]);
        return s;
    }
    /// exp(x) for x <= 0 or NaN.
    template <class D, class V>
    static V exponential(D d, V x) {
        const V lowest = hn::Set(d, std::is_same_v<Acc, float> ? Acc(-104) : Acc(-746));
        const V e = hn::IfThenElseZero(hn::Gt(x, lowest), hn::Exp(d, hn::Max(x, lowest)));
        return hn::IfThenElse(hn::IsNaN(x), x, e);
    }
    static void rows(State* HWY_RESTRICT s, const Acc* const v[4], int count, std::int64_t n, std::int64_t) {
        alignas(64) Acc peak[kTile], scale[kTile], sum[kTile];
        for (std::int64_t i = 0; i < n; i++) {
            peak[i] = s[i].peak;
            for (int j = 0; j < count; j++) peak[i] = v[j][i] > peak[i] ? v[j][i] : peak[i];
            scale[i] = s[i].peak;
            sum[i] = 0;
        }
        const hn::ScalableTag<Acc> d;
        const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
        std::int64_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const auto top = hn::LoadU(d, peak + i);
            hn::StoreU(terms(d, hn::LoadU(d, scale + i), top), d, scale + i);
            for (int j = 0; j < count; j++)
                hn::StoreU(hn::Add(hn::LoadU(d, sum + i), terms(d, hn::LoadU(d, v[j] + i), top)), d, sum + i);
        }
        for (; i < n; i++) {
            scale[i] = static_cast<Acc>(term(scale[i], peak[i]));
            for (int j = 0; j < count; j++) sum[i] += static_cast<Acc>(term(v[j][i], peak[i]));
        }
        for (i = 0; i < n; i++)
            s[i] = {peak[i], s[i].sum * static_cast<double>(scale[i]) + static_cast<double>(sum[i])};
    }
    /// term() of whole vectors.
    template <class D, class V>
    static V terms(D d, V v, V peak) {
        return hn::IfThenElse(hn::Eq(v, peak), hn::Set(d, Acc(1)), exponential(d, hn::Sub(v, peak)));
    }
    void finish(std::int64_t i, const State* s, std::int64_t n) const {
        Acc value[kTile];
        for (std::int64_t k = 0; k < n; k++)
            value[k] =
                static_cast<Acc>(s[k].sum != s[k].sum ? s[k].sum : static_cast<double>(s[k].peak) + std::log(s[k].sum));
        element.store(args.y, i, value, n);
    }
};

void logsumexp(const ReduceArgs& args, DType dtype, const Spec& spec, bool columns) {
    with_float(dtype,
               [&]<class A>(const Element<A>& element) { walk(args, spec, columns, LogSumExpFold<A>{args, element}); });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
VKML_REDUCE_ENTRIES(logsumexp)
}  // namespace vkml
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/optim/optim_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway includes this file once per instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "vkml/ops/multi_tensor/multi_tensor_args.h"
#include "vkml/ops/optim/optim_kernel.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace vkml {
namespace HWY_NAMESPACE {
namespace {

/// Pointers into one table entry, moved to the first element to work on.
template <class S, class V>
struct Slice {
    S* parameter;
    const S* gradient;
    V *first, *second, *third;
    const V* progress;
};

template <class E, class V>
void sgd(const Slice<E, V>& s, const V* x, const Spec& spec, std::int64_t n) {
    const V rate = x[kOptimRate], decay = x[kOptimDecay], momentum = x[kOptimBeta1], rest = x[kOptimRest2];
    const bool has_momentum = spec[2] != 0, nesterov = spec[3] != 0, started = s.progress[kOptimSteps] > V(1.5);
    for (std::int64_t i = 0; i < n; i++) {
        const V p = E::load(s.parameter[i]);
        V g = E::load(s.gradient[i]) + decay * p;
        if (has_momentum) {
            const V m = started ? momentum * s.first[i] + rest * g : g;
            s.first[i] = m;
            g = nesterov ? g + momentum * m : m;
        }
        s.parameter[i] = E::store(p - rate * g);
    }
}

template <class E, class V>
void adam(const Slice<E, V>& s, const V* x, const Spec& spec, std::int64_t n) {
    const V rate = x[kOptimRate], decay = x[kOptimDecay], eps = x[kOptimEps];
    const V beta1 = x[kOptimBeta1], rest1 = x[kOptimRest1], beta2 = x[kOptimBeta2], rest2 = x[kOptimRest2];
    const V scale = std::sqrt(s.progress[kOptimCorrection2]), step = rate / s.progress[kOptimCorrection1];
    const bool coupled = spec[1] == kOptimAdam;
    for (std::int64_t i = 0; i < n; i++) {
        V p = E::load(s.parameter[i]), g = E::load(s.gradient[i]);
        if (coupled)
            g += decay * p;
        else
            p -= rate * decay * p;
        const V m = beta1 * s.first[i] + rest1 * g;
        const V v = beta2 * s.second[i] + rest2 * g * g;
        s.first[i] = m;
        s.second[i] = v;
        s.parameter[i] = E::store(p - step * (m / (std::sqrt(v) / scale + eps)));
    }
}

template <class E, class V>
void rmsprop(const Slice<E, V>& s, const V* x, const Spec& spec, std::int64_t n) {
    const V rate = x[kOptimRate], decay = x[kOptimDecay], momentum = x[kOptimBeta1], beta2 = x[kOptimBeta2],
            rest2 = x[kOptimRest2];
    const bool has_momentum = spec[2] != 0, centered = spec[4] != 0;
    for (std::int64_t i = 0; i < n; i++) {
        const V p = E::load(s.parameter[i]);
        const V g = E::load(s.gradient[i]) + decay * p;
        V v = beta2 * s.first[i] + rest2 * g * g;
        s.first[i] = v;
        if (centered) {
            const V m = beta2 * s.second[i] + rest2 * g;
            s.second[i] = m;
            v -= m * m;
        }
        V step = g / (std::sqrt(v) + x[kOptimEps]);
        if (has_momentum) {
            step += momentum * s.third[i];
            s.third[i] = step;
        }
        s.parameter[i] = E::store(p - rate * step);
    }
}

template <class E, class V>
void lion(const Slice<E, V>& s, const V* x, std::int64_t n) {
    const V rate = x[kOptimRate], decay = x[kOptimDecay];
    for (std::int64_t i = 0; i < n; i++) {
        const V p = E::load(s.parameter[i]), g = E::load(s.gradient[i]), m = s.first[i];
        const V update = x[kOptimBeta1] * m + x[kOptimRest1] * g;
        s.first[i] = x[kOptimBeta2] * m + x[kOptimRest2] * g;
        const V direction = update > 0 ? V(1) : update < 0 ? V(-1) : update - update;  // NaN stays
        s.parameter[i] = E::store(p - rate * decay * p - rate * direction);
    }
}

template <class E, class V>
void adagrad(const Slice<E, V>& s, const V* x, std::int64_t n) {
    const V rate = x[kOptimRate] / (V(1) + (s.progress[kOptimSteps] - V(1)) * x[kOptimBeta1]);
    for (std::int64_t i = 0; i < n; i++) {
        const V p = E::load(s.parameter[i]);
        const V g = E::load(s.gradient[i]) + x[kOptimDecay] * p;
        const V sum = s.first[i] + g * g;
        s.first[i] = sum;
        s.parameter[i] = E::store(p - rate * (g / (std::sqrt(sum) + x[kOptimEps])));
    }
}

template <class E, class V>
void nadam(const Slice<E, V>& s, const V* x, std::int64_t n) {
    const V scale = std::sqrt(s.progress[kOptimCorrection2]), of_gradient = s.progress[kOptimGradientShare],
            of_mean = s.progress[kOptimMeanShare];
    for (std::int64_t i = 0; i < n; i++) {
        const V p = E::load(s.parameter[i]);
        const V g = E::load(s.gradient[i]) + x[kOptimDecay] * p;
        const V m = x[kOptimBeta1] * s.first[i] + x[kOptimRest1] * g;
        const V v = x[kOptimBeta2] * s.second[i] + x[kOptimRest2] * g * g;
        s.first[i] = m;
        s.second[i] = v;
        const V denominator = std::sqrt(v) / scale + x[kOptimEps];
        s.parameter[i] = E::store(p - x[kOptimRate] * ((of_gradient * g + of_mean * m) / denominator));
    }
}

template <class E>
void run(const OptimArgs& args, const Spec& spec) {
    using S = E;
    using V = typename E::Value;
    const auto* table = reinterpret_cast<const std::uint64_t*>(args.table);
    const auto* numbers = reinterpret_cast<const V*>(args.numbers);
    for (std::uint32_t e = 0; e < args.entries; e++) {
        const std::uint64_t* entry = table + std::size_t{e} * kTableWords;
        cpu::parallel_for(static_cast<std::int64_t>(entry[kTableCount]), cpu::kGrain / 4,
                          [&](std::int64_t begin, std::int64_t end) {
                              const auto state = [&](int which) {
                                  V* base = reinterpret_cast<V*>(entry[which]);
                                  return base ? base + begin : nullptr;
                              };
                              const Slice<S, V> slice{reinterpret_cast<S*>(entry[0]) + begin,
                                                      reinterpret_cast<const S*>(entry[1]) + begin,
                                                      state(2),
                                                      state(3),
                                                      state(4),
                                                      reinterpret_cast<const V*>(entry[kOptimProgressAt])};
                              switch (spec[1]) {
                                  case kOptimSgd:
                                      return sgd<E, V>(slice, numbers, spec, end - begin);
                                  case kOptimRmsProp:
                                      return rmsprop<E, V>(slice, numbers, spec, end - begin);
                                  case kOptimLion:
                                      return lion<E, V>(slice, numbers, end - begin);
                                  case kOptimAdagrad:
                                      return adagrad<E, V>(slice, numbers, end - begin);
                                  case kOptimNadam:
                                      return nadam<E, V>(slice, numbers, end - begin);
                                  default:
                                      return adam<E, V>(slice, numbers, spec, end - begin);
                              }
                          });
    }
}

void step(const OptimArgs& args, DType dtype, const Spec& spec) {
    cpu::for_float(dtype, [&](auto element) { run<decltype(element)>(args, spec); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace vkml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {

HWY_EXPORT(step);

/// Nadam's momentum of a step: beta1 (1 - 0.96^(t decay) / 2).
template <class V>
V momentum_at(V t, const V* x) {
    return x[kOptimBeta1] * (V(1) - V(0.5) * std::exp(t * x[kOptimDamping] * V(-0.040821994520255166)));
}

template <class V>
void advance_nadam(V* progress, const V* x) {
    const V t = progress[kOptimSteps] + V(1);
    const V now = momentum_at(t, x), next = momentum_at(t + V(1), x);
    const V product = t > V(1.5) ? progress[kOptimCorrection1] * now : now;
    progress[kOptimCorrection1] = product;
    progress[kOptimGradientShare] = (V(1) - now) / (V(1) - product);
    progress[kOptimMeanShare] = next / (V(1) - product * next);
}

template <class V>
void advance(const OptimAdvanceArgs& args, bool nadam) {
    const V* x = reinterpret_cast<const V*>(args.numbers);
    const auto* table = reinterpret_cast<const std::uint64_t*>(args.table);
    for (std::uint32_t e = 0; e < args.entries; e++) {
        V* progress = reinterpret_cast<V*>(table[std::size_t{e} * kTableWords + kOptimProgressAt]);
        if (nadam)
            advance_nadam(progress, x);
        else
            progress[kOptimCorrection1] = x[kOptimBeta1] * progress[kOptimCorrection1] + x[kOptimRest1];
        progress[kOptimCorrection2] = x[kOptimBeta2] * progress[kOptimCorrection2] + x[kOptimRest2];
        progress[kOptimSteps] += 1;
    }
}

bool skips(Address flag) { return flag && *reinterpret_cast<const std::uint32_t*>(flag) != 0; }

}  // namespace

void optim_step_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const OptimArgs*>(raw);
    if (!skips(args.skip)) HWY_DYNAMIC_DISPATCH(step)(args, dtype, spec);
}

void optim_advance_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& args = *static_cast<const OptimAdvanceArgs*>(raw);
    if (skips(args.skip)) return;
    if (dtype == DType::f64)
        advance<double>(args, spec[1] == kOptimNadam);
    else
        advance<float>(args, spec[1] == kOptimNadam);
}

}  // namespace vkml
#endif

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/losses/nll_cpu.cpp"
// clang-format off: this order is Highway's
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include "vkml/ops/losses/nll_kernel.h"
#include "vkml/runtime/cpu/exp-inl.h"
#include "vkml/runtime/cpu/rows-inl.h"
#include "vkml/runtime/fault.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace {

template <class E>
void losses(const NllArgs& a, bool softmax) {
    using V = typename E::Value;
    const auto* input = reinterpret_cast<const typename E::Stored*>(a.input);
    const auto *weights = reinterpret_cast<const V*>(a.weight), *peak = reinterpret_cast<const V*>(a.peak),
               *log_sum = reinterpret_cast<const V*>(a.log_sum);
    const auto* target = reinterpret_cast<const std::int64_t*>(a.target);
    const std::int64_t classes = a.classes, inner = a.inner;
    cpu::parallel_for(static_cast<std::int64_t>(a.count), cpu::kGrain / 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            const std::int64_t t = target[i];
            V loss = 0, weight = 0;
            if (t != a.ignore) {
                if (t < 0 || t >= classes)
                    report_fault(a.fault, FaultCode::index_out_of_range, a.site, t, classes);
                else {
                    weight = weights ? weights[t] : V{1};
                    V log = E::load(input[(i / inner * classes + t) * inner + i % inner]);
                    if (softmax) log = (log - peak[i]) - log_sum[i];
                    loss = -weight * log;
                }
            }
            reinterpret_cast<V*>(a.values)[i] = loss;
            reinterpret_cast<V*>(a.kept)[i] = weight;
        }
    });
}

template <class D, class Vector>
HWY_INLINE Vector probability(D d, Vector x, Vector peak, Vector log_sum) {
    return exp_of(d, hn::Sub(hn::Sub(x, peak), log_sum));
}

/// What the gradients of a position's classes share.
template <class V>
struct Position {
    std::int64_t target;
    V scale, peak, log_sum;
    bool counts;

    Position(const NllArgs& a, std::int64_t i) {
        const auto* weights = reinterpret_cast<const V*>(a.weight);
        target = reinterpret_cast<const std::int64_t*>(a.target)[i];
        counts = target != a.ignore && target >= 0 && target < static_cast<std::int64_t>(a.classes);
        scale = counts ? reinterpret_cast<const V*>(a.values)[i] * (weights ? weights[target] : V{1}) : V{0};
        peak = a.peak ? reinterpret_cast<const V*>(a.peak)[i] : V{0};
        log_sum = a.log_sum ? reinterpret_cast<const V*>(a.log_sum)[i] : V{0};
    }
    /// Of the target's own class.
    V own(V x) const {
        const hn::ScalableTag<V> d;
        return scale * (hn::GetLane(probability(d, hn::Set(d, x), hn::Set(d, peak), hn::Set(d, log_sum))) - V{1});
    }
};

template <class V>
void gradient_row(const NllArgs& a, const RowView<V>& row) {
    const hn::ScalableTag<V> d;
    const Position<V> p(a, row.row);
    if (!p.counts) {
        std::fill(row.y, row.y + row.cols, V{0});
        return;
    }
    const V own = p.own(row.x[p.target]);
    const auto scale = hn::Set(d, p.scale), peak = hn::Set(d, p.peak), log_sum = hn::Set(d, p.log_sum);
    each_piece(row.cols, row.alone, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        each_vector(row.x + begin, end - begin, V{0}, [&](auto v, std::int64_t i) HWY_ATTR {
            store_vector(hn::Mul(scale, probability(d, v, peak, log_sum)), row.y + begin, i, end - begin);
        });
    });
    row.y[p.target] = own;
}

/// Positions beside each other, and in memory as well.
template <class E>
void gradient_block(const NllArgs& a, const ColumnBlock<E>& b) {
    using V = typename E::Value;
    const hn::ScalableTag<V> d;
    HWY_ALIGN V peak[kColumns + 64] = {}, log_sum[kColumns + 64] = {}, scale[kColumns + 64] = {},
                                counts[kColumns + 64] = {}, buffer[kColumns + 64], out[kColumns + 64];
    for (std::int64_t c = 0; c < b.count; c++) {
        const Position<V> p(a, b.row + c);
        peak[c] = p.peak, log_sum[c] = p.log_sum, scale[c] = p.scale, counts[c] = p.counts ? V{1} : V{0};
    }
    for (std::int64_t e = 0; e < b.cols; e++) {
        const V* x = block_values<E>(b.x + e * b.x_step, b.count, buffer);
        each_vector(x, b.count, V{0}, [&](auto v, std::int64_t c) HWY_ATTR {
            const auto p = probability(d, v, hn::Load(d, peak + c), hn::Load(d, log_sum + c));
            const auto y = hn::Mul(hn::Load(d, scale + c), p);
            hn::Store(hn::IfThenElseZero(hn::Gt(hn::Load(d, counts + c), hn::Zero(d)), y), d, out + c);
        });
        store_run<E>(out, b.count, 1, b.y + e * b.y_step);
    }
    for (std::int64_t c = 0; c < b.count; c++) {
        const Position<V> p(a, b.row + c);
        if (p.counts) b.y[p.target * b.y_step + c] = E::store(p.own(E::load(b.x[p.target * b.x_step + c])));
    }
}

/// Of log-probabilities: zeros beside the target.
template <class E>
void gradients_of_logs(const NllArgs& a) {
    using V = typename E::Value;
    auto* dx = reinterpret_cast<typename E::Stored*>(a.dx);
    const std::int64_t classes = a.classes, inner = a.inner, positions = static_cast<std::int64_t>(a.count) / classes;
    cpu::parallel_for(positions / inner, std::max<std::int64_t>(1, cpu::kGrain / 4 / (classes * inner)),
                      [&](std::int64_t begin, std::int64_t end) {
                          std::fill(dx + begin * classes * inner, dx + end * classes * inner, E::store(V{0}));
                          for (std::int64_t i = begin * inner; i < end * inner; i++) {
                              const Position<V> p(a, i);
                              if (p.counts)
                                  dx[(i / inner * classes + p.target) * inner + i % inner] = E::store(-p.scale);
                          }
                      });
}

void losses_run(const NllArgs& a, DType dtype, bool softmax) {
    with_element(dtype, [&](auto element) { losses<decltype(element)>(a, softmax); });
}

void gradients_run(const NllArgs& a, DType dtype, bool softmax) {
    RowArgs rows{};
    rows.x = a.input, rows.y = a.dx;
    rows.rows = a.count / a.classes;
    rows.cols = a.classes, rows.inner = a.inner, rows.x_step = a.inner;
    rows.strides[0] = static_cast<std::int64_t>(a.classes) * a.inner, rows.strides[1] = 1;
    rows.sizes[0] = a.inner;
    const int rank = a.inner > 1 ? 2 : 1;
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        if (!softmax)
            gradients_of_logs<E>(a);
        else
            each_row_or_block<E>(
                rows, rank, [&](const auto& row) { gradient_row(a, row); },
                [&](const auto& block) { gradient_block(a, block); });
    });
}

}  // namespace
}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {
HWY_EXPORT(losses_run);
HWY_EXPORT(gradients_run);
}  // namespace

void nll_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(losses_run)(*static_cast<const NllArgs*>(args), dtype, spec[0] != 0);
}

void nll_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(gradients_run)(*static_cast<const NllArgs*>(args), dtype, spec[0] != 0);
}

}  // namespace vkml
#endif

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/softmax/softmax_cpu.cpp"
// clang-format off: this order is Highway's
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on
#include "vkml/ops/softmax/softmax_kernel.h"
#include "vkml/runtime/cpu/exp-inl.h"
#include "vkml/runtime/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace {

// Not -inf: -inf - (-inf) would be NaN in a row where only a part is -inf.
template <class V>
constexpr V kLowest = std::numeric_limits<V>::lowest();

template <class V>
V maximum(const V* in, std::int64_t n) {
    const hn::ScalableTag<V> d;
    auto m = hn::Set(d, kLowest<V>);
    each_vector(in, n, kLowest<V>, [&](auto v, std::int64_t) { m = hn::Max(m, v); });
    return hn::GetLane(hn::MaxOfLanes(d, m));
}

/// Sum of exp(x - m); the terms go to `out` unless it is null.
template <class V>
double sum_of_exp(const V* in, std::int64_t n, V m, V* out) {
    const hn::ScalableTag<V> d;
    const auto peak = hn::Set(d, m);
    return sum_terms(in, n, -std::numeric_limits<V>::infinity(), [&](auto v, std::int64_t i) HWY_ATTR {
        const auto e = exp_of(d, hn::Sub(v, peak));
        if (out) store_vector(e, out, i, n);
        return e;
    });
}

/// Where the statistics of rows go if nothing else is wanted.
template <class V>
struct Statistics {
    V *peak, *log_sum;  // null where the rows themselves are stored
};

template <class V>
void softmax_row(const RowView<V>& row, bool log, Statistics<V> to) {
    const hn::ScalableTag<V> d;
    const std::int64_t n = row.cols;
    std::vector<V> peaks(static_cast<std::size_t>((n + kPiece - 1) / kPiece));
    each_piece(n, row.alone, [&](std::int64_t p, std::int64_t begin, std::int64_t end) {
        peaks[static_cast<std::size_t>(p)] = maximum(row.x + begin, end - begin);
    });
    V m = kLowest<V>;
    for (V peak : peaks) m = peak > m || std::isnan(peak) ? peak : m;
    const double sum = sum_pieces(n, row.alone, [&](std::int64_t begin, std::int64_t end) {
        return sum_of_exp(row.x + begin, end - begin, m, log ? static_cast<V*>(nullptr) : row.y + begin);
    });
    if (to.peak) {
        to.peak[row.row] = m;
        to.log_sum[row.row] = static_cast<V>(std::log(sum));
        return;
    }
    const auto peak = hn::Set(d, m), divisor = hn::Set(d, static_cast<V>(log ? std::log(sum) : sum));
    each_piece(n, row.alone, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        const V* in = log ? row.x : row.y;
        each_vector(in + begin, end - begin, V{0}, [&](auto v, std::int64_t i) HWY_ATTR {
            store_vector(log ? hn::Sub(hn::Sub(v, peak), divisor) : hn::Div(v, divisor), row.y + begin, i, end - begin);
        });
    });
}

template <class E>
void softmax_block(const ColumnBlock<E>& b, bool log, Statistics<typename E::Value> to) {
    using V = typename E::Value;
    const hn::ScalableTag<V> d;
    HWY_ALIGN V peak[kColumns + 64], part[kColumns + 64], buffer[kColumns + 64];
    double sum[kColumns] = {};
    std::fill(peak, peak + kColumns, kLowest<V>);
    for (std::int64_t e = 0; e < b.cols; e++) {
        const V* x = block_values<E>(b.x + e * b.x_step, b.count, buffer);
        each_vector(x, b.count, V{0}, [&](auto v, std::int64_t c) HWY_ATTR {
            hn::Store(hn::Max(hn::Load(d, peak + c), v), d, peak + c);
        });
    }
    std::fill(part, part + kColumns, V{0});
    for (std::int64_t e = 0; e < b.cols; e++) {
        const V* x = block_values<E>(b.x + e * b.x_step, b.count, buffer);
        each_vector(x, b.count, V{0}, [&](auto v, std::int64_t c) HWY_ATTR {
            const auto term = exp_of(d, hn::Sub(v, hn::Load(d, peak + c)));
            hn::Store(hn::Add(hn::Load(d, part + c), term), d, part + c);
            if constexpr (kIsValue<E>)
                if (!log) store_vector(term, b.y + e * b.y_step, c, b.count);
        });
        if (e % 128 == 127 || e + 1 == b.cols)
            for (std::int64_t c = 0; c < b.count; c++) {
                sum[c] += static_cast<double>(part[c]);
                part[c] = 0;
            }
    }
    for (std::int64_t c = 0; c < b.count; c++) part[c] = static_cast<V>(log ? std::log(sum[c]) : sum[c]);
    if (to.peak) {
        std::copy(peak, peak + b.count, to.peak + b.row);
        std::copy(part, part + b.count, to.log_sum + b.row);
        return;
    }
    for (std::int64_t e = 0; e < b.cols; e++) {
        const bool done = kIsValue<E> && !log;  // y holds the exponentials
        const V* x = block_values<E>(done ? b.y + e * b.y_step : b.x + e * b.x_step, b.count, buffer);
        V* out = buffer;
        if constexpr (kIsValue<E>) out = b.y + e * b.y_step;
        each_vector(x, b.count, V{0}, [&](auto v, std::int64_t c) HWY_ATTR {
            const auto shifted = done ? v : hn::Sub(v, hn::Load(d, peak + c));
            const auto s = hn::Load(d, part + c);
            const auto y = log ? hn::Sub(shifted, s) : hn::Div(done ? v : exp_of(d, shifted), s);
            store_vector(y, out, c, b.count);
        });
        if constexpr (!kIsValue<E>) store_run<E>(buffer, b.count, 1, b.y + e * b.y_step);
    }
}

void softmax_run(const RowArgs& args, DType dtype, int rank, bool log) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        Statistics<V> to{};
        if (!args.y) to = {reinterpret_cast<V*>(args.mean), reinterpret_cast<V*>(args.rstd)};
        each_row_or_block<E>(
            args, rank, [&](const auto& row) { softmax_row(row, log, to); },
            [&](const auto& block) { softmax_block(block, log, to); });
    });
}

/// x is the gradient g, second the result y: y (g - sum(g y)), or g - exp(y) sum(g).
template <class V>
void backward_row(const RowView<V>& row, bool log) {
    const hn::ScalableTag<V> d;
    const double sum = sum_pieces(row.cols, row.alone, [&](std::int64_t begin, std::int64_t end) {
        const V* y = row.second + begin;
        return sum_terms(row.x + begin, end - begin, V{0}, [&](auto g, std::int64_t i) HWY_ATTR {
            if (log) return g;
            if (i + static_cast<std::int64_t>(hn::Lanes(d)) <= end - begin) return hn::Mul(g, hn::LoadU(d, y + i));
            HWY_ALIGN V tail[hn::MaxLanes(d)] = {};
            std::copy(y + i, y + (end - begin), tail);
            return hn::Mul(g, hn::Load(d, tail));
        });
    });
    const auto s = hn::Set(d, static_cast<V>(sum));
    each_piece(row.cols, row.alone, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        const std::int64_t n = end - begin, lanes = static_cast<std::int64_t>(hn::Lanes(d));
        each_vector(row.x + begin, n, V{0}, [&](auto g, std::int64_t i) HWY_ATTR {
            HWY_ALIGN V tail[hn::MaxLanes(d)] = {};
            const V* from = row.second + begin + i;
            if (i + lanes > n) {
                std::copy(from, from + (n - i), tail);
                from = tail;
            }
            const auto y = hn::LoadU(d, from);
            store_vector(log ? hn::Sub(g, hn::Mul(exp_of(d, y), s)) : hn::Mul(y, hn::Sub(g, s)), row.y + begin, i, n);
        });
    });
}

template <class E>
void backward_block(const ColumnBlock<E>& b, bool log) {
    using V = typename E::Value;
    const hn::ScalableTag<V> d;
    HWY_ALIGN V part[kColumns + 64] = {}, g_buffer[kColumns + 64] = {}, y_buffer[kColumns + 64] = {};
    double sum[kColumns] = {};
    for (std::int64_t e = 0; e < b.cols; e++) {
        load_run<E>(b.x + e * b.x_step, 1, b.count, g_buffer);
        load_run<E>(b.second + e * b.y_step, 1, b.count, y_buffer);
        each_vector(g_buffer, b.count, V{0}, [&](auto g, std::int64_t c) HWY_ATTR {
            const auto term = log ? g : hn::Mul(g, hn::Load(d, y_buffer + c));
            hn::Store(hn::Add(hn::Load(d, part + c), term), d, part + c);
        });
        if (e % 128 == 127 || e + 1 == b.cols)
            for (std::int64_t c = 0; c < b.count; c++) {
                sum[c] += static_cast<double>(part[c]);
                part[c] = 0;
            }
    }
    for (std::int64_t c = 0; c < b.count; c++) part[c] = static_cast<V>(sum[c]);
    for (std::int64_t e = 0; e < b.cols; e++) {
        load_run<E>(b.x + e * b.x_step, 1, b.count, g_buffer);
        load_run<E>(b.second + e * b.y_step, 1, b.count, y_buffer);
        each_vector(g_buffer, b.count, V{0}, [&](auto g, std::int64_t c) HWY_ATTR {
            const auto y = hn::Load(d, y_buffer + c), s = hn::Load(d, part + c);
            hn::Store(log ? hn::Sub(g, hn::Mul(exp_of(d, y), s)) : hn::Mul(y, hn::Sub(g, s)), d, g_buffer + c);
        });
        store_run<E>(g_buffer, b.count, 1, b.y + e * b.y_step);
    }
}

void backward_run(const RowArgs& args, DType dtype, int rank, bool log) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        each_row_or_block<E>(
            args, rank, [&](const auto& row) { backward_row(row, log); },
            [&](const auto& block) { backward_block(block, log); });
    });
}

}  // namespace
}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {
HWY_EXPORT(softmax_run);
HWY_EXPORT(backward_run);
}  // namespace

void softmax_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(softmax_run)(*static_cast<const RowArgs*>(args), dtype, static_cast<int>(spec[kRowRank]),
                                      spec[kRowFlag] != 0);
}

void softmax_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(backward_run)(*static_cast<const RowArgs*>(args), dtype, static_cast<int>(spec[kRowRank]),
                                       spec[kRowFlag] != 0);
}

}  // namespace vkml
#endif

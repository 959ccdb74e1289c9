#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/layer_norm/norm_cpu.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vkml/ops/layer_norm/norm_kernel.h"
#include "vkml/runtime/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace {

/// Weight or bias as values: in place, or converted into `storage`; null when there is none.
template <class E>
const typename E::Value* parameter_values(Address p, bool is_float, std::int64_t n,
                                          std::vector<typename E::Value>& storage) {
    using V = typename E::Value;
    if (!p) return nullptr;
    if constexpr (kIsValue<E>)
        if (!is_float || sizeof(V) == sizeof(float)) return reinterpret_cast<const V*>(p);
    storage.resize(static_cast<std::size_t>(n));
    if (is_float) {
        const auto* f = reinterpret_cast<const float*>(p);
        for (std::int64_t i = 0; i < n; i++) storage[static_cast<std::size_t>(i)] = static_cast<V>(f[i]);
    } else {
        load_run<E>(reinterpret_cast<const typename E::Stored*>(p), 1, n, storage.data());
    }
    return storage.data();
}

template <class D, class V>
HWY_INLINE hn::Vec<D> load_some(D d, const V* p, std::int64_t i, std::int64_t n, V fill) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (!p) return hn::Set(d, fill);
    if (i + lanes <= n) return hn::LoadU(d, p + i);
    HWY_ALIGN V tail[hn::MaxLanes(d)] = {};
    std::copy(p + i, p + n, tail);
    return hn::Load(d, tail);
}

template <class V>
struct NormValues {
    const V* weight;
    const V* bias;
    V* mean;
    V* rstd;
    double eps;
    bool centred;
};

/// Statistics relative to the row's first element, in pieces, the sums in double.
template <class V>
void norm_row(const RowView<V>& row, const NormValues<V>& p) {
    const hn::ScalableTag<V> d;
    const std::int64_t n = row.cols;
    const V first = p.centred ? row.x[0] : V{0};
    const auto shift = hn::Set(d, first);
    double mean = 0;
    if (p.centred)
        mean = sum_pieces(n, row.alone,
                          [&](std::int64_t begin, std::int64_t end) {
                              return sum_terms(row.x + begin, end - begin, first,
                                               [&](auto v, std::int64_t) HWY_ATTR { return hn::Sub(v, shift); });
                          }) /
               static_cast<double>(n);
    const V centre = static_cast<V>(mean);
    const auto middle = hn::Set(d, centre);
    // The padding of the last vector lies at the centre and adds nothing.
    double square = 0;
    {
        const V fill = first + centre;
        const double lost = static_cast<double>((fill - first) - centre);
        square = sum_pieces(n, row.alone, [&](std::int64_t begin, std::int64_t end) {
            const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
            const std::int64_t padding = (lanes - (end - begin) % lanes) % lanes;
            const double sum = sum_terms(row.x + begin, end - begin, fill, [&](auto v, std::int64_t) HWY_ATTR {
                const auto x = hn::Sub(hn::Sub(v, shift), middle);
                return hn::Mul(x, x);
            });
            return std::isfinite(lost) ? sum - static_cast<double>(padding) * lost * lost : sum;
        });
    }
    const V rstd = static_cast<V>(1.0 / std::sqrt(square / static_cast<double>(n) + p.eps));
    const auto scale = hn::Set(d, rstd);
    each_piece(n, row.alone, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        each_vector(row.x + begin, end - begin, V{0}, [&](auto v, std::int64_t i) HWY_ATTR {
            auto y = hn::Mul(hn::Sub(hn::Sub(v, shift), middle), scale);
            if (p.weight) y = hn::Mul(y, load_some(d, p.weight + begin, i, end - begin, V{1}));
            if (p.bias) y = hn::Add(y, load_some(d, p.bias + begin, i, end - begin, V{0}));
            store_vector(y, row.y + begin, i, end - begin);
        });
    });
    if (p.mean) p.mean[row.row] = centre;
    if (p.rstd) p.rstd[row.row] = rstd;
}

void norm_run(const RowArgs& a, DType dtype, const Spec& spec) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        std::vector<V> weight, bias;
        const bool is_float = spec[kRowFloatParameters] != 0;
        const NormValues<V> p{parameter_values<E>(a.weight, is_float, a.cols, weight),
                              parameter_values<E>(a.bias, is_float, a.cols, bias),
                              reinterpret_cast<V*>(a.mean),
                              reinterpret_cast<V*>(a.rstd),
                              static_cast<double>(a.eps_high) + static_cast<double>(a.eps_low),
                              spec[kRowFlag] == kCentred};
        each_row<E>(a, static_cast<int>(spec[kRowRank]), [&](const RowView<V>& row) { norm_row(row, p); });
    });
}

template <class V>
void norm_backward_row(const RowView<V>& row, const NormValues<V>& p) {
    const hn::ScalableTag<V> d;
    const std::int64_t n = row.cols;
    const auto shift = hn::Set(d, p.centred ? row.x[0] : V{0}), middle = hn::Set(d, p.centred ? p.mean[row.row] : V{0});
    const auto scale = hn::Set(d, p.rstd[row.row]);
    const auto hat = [&](auto v) HWY_ATTR { return hn::Mul(hn::Sub(hn::Sub(v, shift), middle), scale); };
    const auto gh = [&](std::int64_t begin, std::int64_t i, std::int64_t end) HWY_ATTR {
        const auto g = load_some(d, row.second + begin, i, end - begin, V{0});  // 0 past the end
        return p.weight ? hn::Mul(g, load_some(d, p.weight + begin, i, end - begin, V{0})) : g;
    };
    double sum = 0;
    if (p.centred)
        sum = sum_pieces(n, row.alone, [&](std::int64_t begin, std::int64_t end) {
            return sum_terms(row.x + begin, end - begin, V{0},
                             [&](auto, std::int64_t i) HWY_ATTR { return gh(begin, i, end); });
        });
    const double product = sum_pieces(n, row.alone, [&](std::int64_t begin, std::int64_t end) {
        return sum_terms(row.x + begin, end - begin, V{0},
                         [&](auto v, std::int64_t i) HWY_ATTR { return hn::Mul(gh(begin, i, end), hat(v)); });
    });
    const auto a = hn::Set(d, static_cast<V>(sum / static_cast<double>(n)));
    const auto b = hn::Set(d, static_cast<V>(product / static_cast<double>(n)));
    each_piece(n, row.alone, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        each_vector(row.x + begin, end - begin, V{0}, [&](auto v, std::int64_t i) HWY_ATTR {
            const auto dx = hn::Mul(scale, hn::Sub(hn::Sub(gh(begin, i, end), a), hn::Mul(hat(v), b)));
            store_vector(dx, row.y + begin, i, end - begin);
        });
    });
}

void norm_backward_run(const RowArgs& a, DType dtype, const Spec& spec) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        std::vector<V> weight;
        const NormValues<V> p{parameter_values<E>(a.weight, spec[kRowFloatParameters] != 0, a.cols, weight),
                              nullptr,
                              reinterpret_cast<V*>(a.mean),
                              reinterpret_cast<V*>(a.rstd),
                              0,
                              spec[kRowFlag] == kCentred};
        each_row<E>(a, static_cast<int>(spec[kRowRank]), [&](const RowView<V>& row) { norm_backward_row(row, p); });
    });
}

/// spec: parts, row axes, float parameters, flag. Each part of the rows adds up its own sums, which parameters_fold
/// adds in order.
void norm_parameters_partial_run(const RowArgs& a, DType dtype, const Spec& spec) {
    with_element(dtype, [&](auto element) {
        using E = decltype(element);
        using V = typename E::Value;
        const bool centred = spec[3] == kCentred;
        const auto parts = static_cast<std::int64_t>(spec[0]), rows = static_cast<std::int64_t>(a.rows);
        const std::int64_t cols = a.cols, length = (rows + parts - 1) / parts;
        const auto* x = reinterpret_cast<const typename E::Stored*>(a.x);
        const auto* g = reinterpret_cast<const typename E::Stored*>(a.second);
        const auto* mean = reinterpret_cast<const V*>(a.mean);
        const auto* rstd = reinterpret_cast<const V*>(a.rstd);
        cpu::parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
            std::vector<V> xs(static_cast<std::size_t>(cols)), gs(static_cast<std::size_t>(cols));
            for (std::int64_t part = begin; part < end; part++) {
                V* weight = reinterpret_cast<V*>(a.scratch) + part * 2 * cols;
                V* bias = weight + cols;
                std::fill(weight, weight + 2 * cols, V{0});
                for (std::int64_t r = part * length; r < std::min(rows, (part + 1) * length); r++) {
                    const auto* from = x + strided_offset(a, static_cast<int>(spec[1]), r);
                    load_run<E>(from, a.x_step, cols, xs.data());
                    load_run<E>(g + r * cols, 1, cols, gs.data());
                    const V first = centred ? E::load(from[0]) : V{0}, middle = centred ? mean[r] : V{0};
                    for (std::int64_t e = 0; e < cols; e++) {
                        const auto at = static_cast<std::size_t>(e);
                        weight[e] += gs[at] * (((xs[at] - first) - middle) * rstd[r]);
                        bias[e] += gs[at];
                    }
                }
            }
        });
    });
}

}  // namespace
}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
namespace {
HWY_EXPORT(norm_run);
HWY_EXPORT(norm_backward_run);
HWY_EXPORT(norm_parameters_partial_run);

template <class V, class Store>
void fold_parameters(const RowArgs& a, std::int64_t parts, const Store& store) {
    const std::int64_t cols = a.cols;
    const V* in = reinterpret_cast<const V*>(a.scratch);
    cpu::parallel_for(cols, cpu::kGrain / std::max<std::int64_t>(parts, 1), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t e = begin; e < end; e++) {
            double weight = 0, bias = 0;
            for (std::int64_t part = 0; part < parts; part++) {
                weight += static_cast<double>(in[part * 2 * cols + e]);
                bias += static_cast<double>(in[part * 2 * cols + cols + e]);
            }
            if (a.weight) store(a.weight, e, weight);
            if (a.bias) store(a.bias, e, bias);
        }
    });
}

}  // namespace

void norm_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(norm_run)(*static_cast<const RowArgs*>(args), dtype, spec);
}

void norm_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(norm_backward_run)(*static_cast<const RowArgs*>(args), dtype, spec);
}

void norm_parameters_partial_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(norm_parameters_partial_run)(*static_cast<const RowArgs*>(args), dtype, spec);
}

void norm_parameters_fold_cpu(const void* raw, DType dtype, const Spec& spec, Grid) {
    const auto& a = *static_cast<const RowArgs*>(raw);
    const auto parts = static_cast<std::int64_t>(spec[0]);
    const DType to = spec[2] ? DType::f32 : dtype;
    const auto store = [to](Address p, std::int64_t e, double v) {
        switch (to) {
            case DType::f64:
                reinterpret_cast<double*>(p)[e] = v;
                break;
            case DType::f16:
                reinterpret_cast<std::uint16_t*>(p)[e] = f16_from_double(v);
                break;
            case DType::bf16:
                reinterpret_cast<std::uint16_t*>(p)[e] = bf16_from_double(v);
                break;
            default:
                reinterpret_cast<float*>(p)[e] = static_cast<float>(v);
        }
    };
    if (dtype == DType::f64)
        fold_parameters<double>(a, parts, store);
    else
        fold_parameters<float>(a, parts, store);
}

}  // namespace vkml
#endif

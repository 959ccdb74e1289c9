#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/reduce/plain_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/walk_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class A, Plain op>
struct Operation {
    static A identity() {
        using Limits = std::numeric_limits<A>;
        if constexpr (op == Plain::product)
            return 1;
        else if constexpr (op == Plain::largest)
            return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        else if constexpr (op == Plain::smallest)
            return Limits::has_infinity ? Limits::infinity() : Limits::max();
        else
            return 0;
    }
    // A NaN compares with nothing, so the first one stays.
    static A fold(A a, A b) {
        if constexpr (op == Plain::product)
            return multiply(a, b);
        else if constexpr (op == Plain::largest)
            return b != b || b > a ? b : a;
        else if constexpr (op == Plain::smallest)
            return b != b || b < a ? b : a;
        else if constexpr (std::is_integral_v<A>)
            return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
        else
            return a + b;
    }
    static A map(A v) {
        if constexpr (op == Plain::squares)
            return multiply(v, v);
        else if constexpr (op == Plain::magnitudes)
            return v < 0 ? -v : v;
        else
            return v;
    }
    /// fold(a[i], map(b[i])) into a, for floats by vectors: the compiler leaves the NaN rules scalar.
    static void fold_into(A* HWY_RESTRICT a, const A* HWY_RESTRICT b, std::int64_t n) {
        std::int64_t i = 0;
        if constexpr (std::is_floating_point_v<A>) {
            const hn::ScalableTag<A> d;
            const auto step = static_cast<std::int64_t>(hn::Lanes(d));
            for (; i + step <= n; i += step)
                hn::StoreU(folded(d, hn::LoadU(d, a + i), mapped(hn::LoadU(d, b + i))), d, a + i);
        }
        for (; i < n; i++) a[i] = fold(a[i], map(b[i]));
    }
    /// fold(a[i], fold(map(b[i]), map(c[i]))) into a.
    static void fold_into(A* HWY_RESTRICT a, const A* HWY_RESTRICT b, const A* HWY_RESTRICT c, std::int64_t n) {
        std::int64_t i = 0;
        if constexpr (std::is_floating_point_v<A>) {
            const hn::ScalableTag<A> d;
            const auto step = static_cast<std::int64_t>(hn::Lanes(d));
            for (; i + step <= n; i += step) {
                const auto two = folded(d, mapped(hn::LoadU(d, b + i)), mapped(hn::LoadU(d, c + i)));
                hn::StoreU(folded(d, hn::LoadU(d, a + i), two), d, a + i);
            }
        }
        for (; i < n; i++) a[i] = fold(a[i], fold(map(b[i]), map(c[i])));
    }
    /// Folds whole pairs of `width` elements of v from `begin` on into as many lanes; returns where they end.
    template <std::int64_t width>
    static std::int64_t fold_pairs(A* HWY_RESTRICT lanes, const A* HWY_RESTRICT v, std::int64_t begin, std::int64_t n) {
        std::int64_t i = begin;
#if !HWY_HAVE_SCALABLE
        if constexpr (std::is_floating_point_v<A>) {  // the lanes stay in registers
            const hn::ScalableTag<A> d;
            constexpr std::int64_t kStep = hn::MaxLanes(hn::ScalableTag<A>()), kVectors = width / kStep;
            hn::Vec<decltype(d)> sums[kVectors];
            for (std::int64_t k = 0; k < kVectors; k++) sums[k] = hn::LoadU(d, lanes + k * kStep);
            for (; i + 2 * width <= n; i += 2 * width)
                for (std::int64_t k = 0; k < kVectors; k++) {
                    const A* at = v + i + k * kStep;
                    sums[k] = folded(d, sums[k], folded(d, mapped(hn::LoadU(d, at)), mapped(hn::LoadU(d, at + width))));
                }
            for (std::int64_t k = 0; k < kVectors; k++) hn::StoreU(sums[k], d, lanes + k * kStep);
        }
#endif
        for (; i + 2 * width <= n; i += 2 * width) fold_into(lanes, v + i, v + i + width, width);
        return i;
    }
    template <class D, class V>
    static V folded(D, V a, V b) {
        if constexpr (op == Plain::product)
            return hn::Mul(a, b);
        else if constexpr (op == Plain::largest)
            return hn::IfThenElse(hn::Or(hn::IsNaN(b), hn::Gt(b, a)), b, a);
        else if constexpr (op == Plain::smallest)
            return hn::IfThenElse(hn::Or(hn::IsNaN(b), hn::Lt(b, a)), b, a);
        else
            return hn::Add(a, b);
    }
    template <class V>
    static V mapped(V v) {
        if constexpr (op == Plain::squares)
            return hn::Mul(v, v);
        else if constexpr (op == Plain::magnitudes)
            return hn::Abs(v);
        else
            return v;
    }
    static A multiply(A a, A b) {
        if constexpr (std::is_integral_v<A>)
            return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
        else
            return a * b;
    }
};

/// One number per result.
template <class A, Plain op>
struct PlainFold {
    using Acc = A;
    using State = Acc;
    using Op = Operation<Acc, op>;
    // The same on every instruction set, so that sums have the same bits there.
    static constexpr std::int64_t kLanes = 256 / sizeof(Acc);

    const ReduceArgs& args;
    Element<Acc> element;
    std::uint32_t finishing;
    bool to_states;

    static State identity() { return Op::identity(); }
    static State merge(State a, State b) { return Op::fold(a, b); }

    static Acc tree(Acc* HWY_RESTRICT lanes, std::int64_t width) {
        for (std::int64_t half = width / 2; half > 0; half /= 2)
            for (std::int64_t l = 0; l < half; l++) lanes[l] = Op::fold(lanes[l], lanes[l + half]);
        return lanes[0];
    }
    static State block(const Acc* HWY_RESTRICT v, std::int64_t n, std::int64_t) {
        if (n <= 8) {
            Acc s = identity();
            for (std::int64_t i = 0; i < n; i++) s = Op::fold(s, Op::map(v[i]));
            return s;
        }
        alignas(64) Acc lanes[kLanes];
        std::int64_t i = 0;
        if (n < kLanes) {
            const auto width = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
            for (; i < n; i++) lanes[i] = Op::map(v[i]);
            for (; i < width; i++) lanes[i] = identity();
            return tree(lanes, width);
        }
        for (std::int64_t l = 0; l < kLanes; l++) lanes[l] = Op::map(v[l]);
        i = Op::template fold_pairs<kLanes>(lanes, v, kLanes, n);
        for (; i < n; i += kLanes) Op::fold_into(lanes, v + i, std::min(kLanes, n - i));
        return tree(lanes, kLanes);
    }
    static void rows(State* HWY_RESTRICT s, const Acc* const v[4], int count, std::int64_t n, std::int64_t) {
        int j = 0;
        for (; j + 2 <= count; j += 2) Op::fold_into(s, v[j], v[j + 1], n);
        if (j < count) Op::fold_into(s, v[j], n);
    }
    void finish(std::int64_t i, State* s, std::int64_t n) const {
        if (to_states) {
            std::copy_n(s, n, reinterpret_cast<Acc*>(args.y) + i);
            return;
        }
        const Acc divisor = divisor_of<Acc>(args);
        if (finishing == 1)
            for (std::int64_t k = 0; k < n; k++) s[k] = s[k] / divisor;
        if (finishing == 2)
            for (std::int64_t k = 0; k < n; k++) s[k] = static_cast<Acc>(std::sqrt(s[k]));
        element.store(args.y, i, s, n);
    }
};

template <Plain op, class A>
void plain_of(const ReduceArgs& args, const Spec& spec, bool columns, const Element<A>& element) {
    walk(args, spec, columns, PlainFold<A, op>{args, element, spec[3], spec[8] != 0});
}

void plain(const ReduceArgs& args, DType dtype, const Spec& spec, bool columns) {
    const auto op = static_cast<Plain>(spec[2]);
    const auto number = [&](const auto& element) {
        switch (op) {
            case Plain::product:
                return plain_of<Plain::product>(args, spec, columns, element);
            case Plain::largest:
                return plain_of<Plain::largest>(args, spec, columns, element);
            case Plain::smallest:
                return plain_of<Plain::smallest>(args, spec, columns, element);
            default:
                return plain_of<Plain::sum>(args, spec, columns, element);
        }
    };
    const auto norm = [&](const auto& element) {  // floats only
        if (op == Plain::squares) return plain_of<Plain::squares>(args, spec, columns, element);
        plain_of<Plain::magnitudes>(args, spec, columns, element);
    };
    if (op == Plain::squares || op == Plain::magnitudes)
        with_float(dtype, norm);
    else
        with_element(dtype, number);
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
VKML_REDUCE_ENTRIES(plain)
}  // namespace vkml
#endif

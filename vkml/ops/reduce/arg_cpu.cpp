#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/reduce/arg_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/walk_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// Elements as integers that keep their order, -0 equal to +0, NaN above all; turned round for the smallest. As
/// arg.slang.
template <class Acc, bool largest>
struct Order {
    using Key = std::conditional_t<std::is_same_v<Acc, float>, std::int32_t, std::int64_t>;
    static constexpr Key kLowest = std::numeric_limits<Key>::min(), kNan = std::numeric_limits<Key>::max();

    static Key key(Acc v) {
        if constexpr (std::is_integral_v<Acc>)
            return largest ? v : ~v;
        else {
            const Key bits = std::bit_cast<Key>(v), magnitude = bits & kNan;
            const Key k = (bits < 0) == largest ? -magnitude : magnitude;
            return v != v ? kNan : k;
        }
    }
    static Acc value(Key key) {
        if constexpr (std::is_integral_v<Acc>)
            return largest ? key : ~key;
        else {
            if (key == kNan) return std::numeric_limits<Acc>::quiet_NaN();
            const Acc magnitude = std::bit_cast<Acc>(key < 0 ? -key : key);
            return (key < 0) == largest && key != 0 ? -magnitude : magnitude;
        }
    }
};

template <class A, bool largest>
struct ArgFold {
    using Acc = A;
    using O = Order<Acc, largest>;
    using Key = typename O::Key;
    struct State {
        Key key;
        std::int64_t at;
    };

    const ReduceArgs& args;
    Element<Acc> element;
    bool values;

    static State identity() { return {O::kLowest, std::numeric_limits<std::int64_t>::max()}; }
    static State merge(const State& a, const State& b) {
        return b.key > a.key || (b.key == a.key && b.at < a.at) ? b : a;
    }

    static State block(const Acc* HWY_RESTRICT v, std::int64_t n, std::int64_t position) {
        constexpr std::int64_t kLanes = 256 / sizeof(Key);
        Key best = O::kLowest;
        std::int64_t i = 0;
        if (n >= kLanes) {
            alignas(64) Key lanes[kLanes];
            std::fill(lanes, lanes + kLanes, O::kLowest);
            for (; i + kLanes <= n; i += kLanes)
                for (std::int64_t l = 0; l < kLanes; l++) {
                    const Key k = O::key(v[i + l]);
                    lanes[l] = k > lanes[l] ? k : lanes[l];
                }
            best = *std::max_element(lanes, lanes + kLanes);
        }
        for (; i < n; i++) best = std::max(best, O::key(v[i]));
        std::int64_t at = 0;
        while (at < n && O::key(v[at]) != best) at++;
        return {best, position + at};
    }
    static void rows(State* HWY_RESTRICT s, const Acc* const v[4], int count, std::int64_t n, std::int64_t position) {
        for (int j = 0; j < count; j++)
            for (std::int64_t i = 0; i < n; i++) s[i] = merge(s[i], {O::key(v[j][i]), position + j});
    }
    void finish(std::int64_t i, const State* s, std::int64_t n) const {
        Acc value[kTile];
        for (std::int64_t k = 0; values && k < n; k++) value[k] = O::value(s[k].key);
        if (values) element.store(args.y, i, value, n);
        for (std::int64_t k = 0; k < n; k++) reinterpret_cast<std::int64_t*>(args.index)[i + k] = s[k].at;
    }
};

template <bool largest>
void arg_of(const ReduceArgs& args, DType dtype, const Spec& spec, bool columns) {
    with_element(dtype, [&]<class A>(const Element<A>& element) {
        walk(args, spec, columns, ArgFold<A, largest>{args, element, spec[3] == 0});
    });
}
void arg(const ReduceArgs& args, DType dtype, const Spec& spec, bool columns) {
    if (spec[2] == 0)
        arg_of<true>(args, dtype, spec, columns);
    else
        arg_of<false>(args, dtype, spec, columns);
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
VKML_REDUCE_ENTRIES(arg)
}  // namespace vkml
#endif

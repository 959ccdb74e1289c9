// Included once per Highway target: the vector loop of an operator.
#if defined(VKML_LOOP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef VKML_LOOP_INL
#undef VKML_LOOP_INL
#else
#define VKML_LOOP_INL
#endif

#include "vkml/ops/elementwise/elementwise_cpu.h"
#include "vkml/runtime/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// out[i] = Op(a[i], b[i]); the last, partial vector goes through a buffer.
template <class T, class Op>
void loop(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, T* out, std::int64_t n, T p, T q) {
    using V = Vec<T>;
    const V vp(p), vq(q);
    constexpr std::int64_t kMost = hn::MaxLanes(hn::ScalableTag<T>());
    std::int64_t i = 0;
    for (; i + V::size() <= n; i += V::size()) Op::apply(V::load(a + i), V::load(b + i), vp, vq).store(out + i);
    if (i == n) return;
    HWY_ALIGN T x[kMost], y[kMost];
    for (std::int64_t k = 0; k < V::size(); k++) {
        x[k] = i + k < n ? a[i + k] : T(1);
        y[k] = i + k < n ? b[i + k] : T(1);
    }
    Op::apply(V::load(x), V::load(y), vp, vq).store(x);
    for (std::int64_t k = 0; i + k < n; k++) out[i + k] = x[k];
}

template <class T, class Op, bool exists>
constexpr elementwise::Loop<T> loop_if() {
    if constexpr (exists)
        return &loop<T, Op>;
    else
        return nullptr;
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

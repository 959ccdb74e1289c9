#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/ops/reduce/exact_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vkml/ops/reduce/folds.h"
#include "vkml/ops/reduce/walk_cpu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {

/// The order of exact.slang: runs of 32 one after the other from +0, then adjacent pairs. A block of walk_rows holds a
/// power of two of such runs and its own tree over blocks and chunks pairs adjacently, so the whole is that one tree.
template <class A>
struct ExactFold {
    using Acc = A;
    using State = Acc;
    static constexpr std::int64_t kRun = 32, kRuns = kBlock / kRun;

    const ReduceArgs& args;
    Element<Acc> element;
    bool divides;

    static State identity() { return 0; }
    static State merge(State a, State b) { return a + b; }
    static State block(const Acc* HWY_RESTRICT v, std::int64_t n, std::int64_t) {
        Acc sums[kRuns] = {};
        const std::int64_t whole = n / kRun, runs = (n + kRun - 1) / kRun;
        std::int64_t r = 0;
        for (; r + 8 <= whole; r += 8)  // eight chains at once
            for (std::int64_t k = 0; k < kRun; k++)
                for (std::int64_t j = 0; j < 8; j++) sums[r + j] += v[(r + j) * kRun + k];
        for (; r < runs; r++)
            for (std::int64_t i = r * kRun; i < std::min(n, (r + 1) * kRun); i++) sums[r] += v[i];
        for (std::int64_t width = 1; width < runs; width *= 2)
            for (std::int64_t i = 0; i + width < runs; i += 2 * width) sums[i] += sums[i + width];
        return sums[0];
    }
    void finish(std::int64_t i, State* s, std::int64_t n) const {
        const Acc divisor = divisor_of<Acc>(args);
        for (std::int64_t k = 0; divides && k < n; k++) s[k] = s[k] / divisor;
        element.store(args.y, i, s, n);
    }
};

void exact(const ReduceArgs& args, DType dtype, const Spec& spec) {
    with_float(dtype, [&]<class A>(const Element<A>& element) {
        walk_rows(args, spec, ExactFold<A>{args, element, spec[3] == 1});
    });
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {
HWY_EXPORT(exact);

void exact_sum_cpu(const void* args, DType dtype, const Spec& spec, Grid) {
    HWY_DYNAMIC_DISPATCH(exact)(*static_cast<const ReduceArgs*>(args), dtype, spec);
}
}  // namespace vkml
#endif

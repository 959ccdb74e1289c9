#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vkml/runtime/probe/peak_fma_cpu.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/probe/peak_fma_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace vkml::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Twelve chains hide four cycles of latency at two FMAs per cycle, and fit sixteen registers.
template <class D, class V = hn::Vec<D>>
V chains(D d, float start, float scale_by, float shift_by, std::int64_t rounds) {
    const V scale = hn::Set(d, scale_by), shift = hn::Set(d, shift_by);
    V x[12];
    for (int k = 0; k < 12; k++) x[k] = hn::Set(d, start + static_cast<float>(k));
    for (std::int64_t round = 0; round < rounds; round++)
        for (int k = 0; k < 12; k++) x[k] = hn::MulAdd(x[k], scale, shift);
    V sum = x[0];
    for (int k = 1; k < 12; k++) sum = hn::Add(sum, x[k]);
    return sum;
}

}  // namespace

double run_peak_fma(const PeakFmaArgs& args, std::int64_t threads, std::int64_t rounds) {
    const hn::ScalableTag<float> d;
    auto* target = reinterpret_cast<float*>(args.target);
    const float scale = args.scale, shift = args.shift;
    cpu::parallel_for(threads, 1, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++)
            target[i] = hn::GetLane(hn::SumOfLanes(d, chains(d, static_cast<float>(i), scale, shift, rounds)));
    });
    return static_cast<double>(threads) * static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace vkml::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vkml {

HWY_EXPORT(run_peak_fma);

double peak_fma_cpu(const PeakFmaArgs& args, std::int64_t threads, std::int64_t rounds) {
    return HWY_DYNAMIC_DISPATCH(run_peak_fma)(args, threads, rounds);
}

}  // namespace vkml
#endif

#include "vkml/runtime/probe/peak_fma.h"

#include <algorithm>
#include <chrono>

#include "vkml/runtime/probe/peak_fma.spv.h"
#include "vkml/runtime/probe/peak_fma_kernel.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128, kRounds = 1024;
constexpr Kernel kernel{"peak_fma", spv::peak_fma, nullptr};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// One measured run of `size` workgroups (or CPU pieces); FLOPs done.
double run(Stream& on, const Tensor& target, std::uint32_t size) {
    const PeakFmaArgs args{target.address(), 0.999f, 0.001f};
    if (on.device().is_cpu()) return peak_fma_cpu(args, size, kRounds);
    on.launch(kernel, DType::none, Spec{kThreads, kRounds}, Grid{size, 1, 1}, args, {}, {target});
    on.synchronize();
    return 2.0 * 32 * kThreads * kRounds * size;
}

}  // namespace

double peak_fma(Device device) {
    Stream& on = stream(device);
    std::uint32_t size = 64;
    constexpr std::uint32_t most = 32768;
    const Tensor target = empty({std::int64_t{most} * kThreads}, DType::f32, device);
    double best = 0, spent = 0;
    // Grows until a run takes a few milliseconds: clocks have risen by then and launching costs nothing against it.
    while (spent < 0.8) {
        const double begin = seconds();
        const double flops = run(on, target, size);
        const double took = seconds() - begin;
        spent += took;
        if (took < 5e-3 && size < most) {
            size *= 2;
            continue;
        }
        best = std::max(best, flops / took);
    }
    return best;
}

}  // namespace vkml

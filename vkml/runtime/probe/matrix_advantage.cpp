#include "vkml/runtime/probe/matrix_advantage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/runtime/device_file.h"
#include "vkml/runtime/log.h"
#include "vkml/runtime/probe/peak_fma.spv.h"
#include "vkml/runtime/probe/peak_fma_args.h"
#include "vkml/runtime/probe/peak_matrix.spv.h"
#include "vkml/runtime/registry.h"
#include "vkml/runtime/vulkan/cache_file.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128, kRounds = 1024, kMost = 16384;
constexpr Kernel fma{"peak_fma", spv::peak_fma, nullptr}, matrix{"peak_matrix", spv::peak_matrix, nullptr};
// Of a workgroup: 32 FMAs of an invocation, and eight products of 16x16x16 of a subgroup, a round.
constexpr double kFmaWork = 2.0 * 32 * kThreads * kRounds;
constexpr double kMatrixWork = 2.0 * 16 * 16 * 16 * 8 * (kThreads / 32.0) * kRounds;

// Another program on the device disturbs some of the runs, hardly all of a kind.
constexpr int kTurns = 6;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Operations per second of one run, which grows to two milliseconds or more, so that launching it costs little.
double rate(Stream& on, const Kernel& kernel, double work, const Tensor& target, std::uint32_t& groups) {
    for (;;) {
        const PeakFmaArgs args{target.address(), 0.999f, 0.001f};
        const double begin = seconds();
        on.launch(kernel, DType::none, Spec{kThreads, kRounds}, Grid{groups, 1, 1}, args, {}, {target});
        on.wait(on.submit());
        const double took = seconds() - begin;
        if (took > 2e-3 || groups >= kMost) return work * groups / took;
        groups *= 2;
    }
}

double measure(Stream& on) {
    const Unrecorded outside(on);
    const Tensor target = empty({std::int64_t{kMost} * kThreads}, DType::f32, on.device());
    std::uint32_t fma_groups = 64, matrix_groups = 64;
    double plain = 0, matrices = 0;
    for (int turn = 0; turn < kTurns; turn++) {
        plain = std::max(plain, rate(on, fma, kFmaWork, target, fma_groups));
        matrices = std::max(matrices, rate(on, matrix, kMatrixWork, target, matrix_groups));
    }
    log(LogLevel::info,
        concat("f32 FMA ", plain * 1e-12, ", bf16 matrices ", matrices * 1e-12, " TFLOP/s from registers"));
    return matrices / plain;
}

std::optional<double> number_in(const std::filesystem::path& file) {
    const std::vector<std::byte> bytes = vulkan::read_cache_file(file);
    double number = 0;
    if (bytes.size() != sizeof number) return {};
    std::memcpy(&number, bytes.data(), sizeof number);
    return std::isfinite(number) && number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

double kept_number(const std::filesystem::path& file, const std::function<double()>& measure) {
    if (file.empty()) return measure();
    if (const auto number = number_in(file)) return *number;
    const double number = measure();
    if (const auto first = number_in(file)) return *first;  // another program was quicker
    vulkan::write_cache_file(file, std::as_bytes(std::span(&number, 1)));
    return number;
}

double matrix_advantage(Stream& on) {
    static std::mutex mutex;
    static std::map<int, double> measured;
    const std::lock_guard lock(mutex);
    const auto found = measured.find(on.device().index);
    if (found != measured.end()) return found->second;
    return measured[on.device().index] =
               kept_number(device_files(on.device()).file(".matrices"), [&] { return measure(on); });
}

}  // namespace vkml

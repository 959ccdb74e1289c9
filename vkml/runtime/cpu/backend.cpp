#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/configuration.h"
#include "vkml/runtime/cpu/parallel.h"

namespace vkml::cpu {
namespace {

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

std::uint64_t physical_memory() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const auto colon = line.find(": ");
        if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "CPU";
}

int wanted_threads() {
    const std::string_view text = setting("VKML_THREADS");
    int n = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), n).ec == std::errc{} && n > 0) return n;
    return omp_get_max_threads();
}

std::uint64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Runs each command when it is recorded.
class CpuBackend final : public Backend {
  public:
    CpuBackend() { limits_.total_memory = limits_.max_allocation = physical_memory(); }

    Device device() const override { return {}; }
    const Limits& limits() const override { return limits_; }

    Memory allocate(std::size_t bytes, MemoryKind) override {
        check<OutOfMemoryError>(bytes <= limits_.max_allocation, "allocation: expected at most ",
                                limits_.max_allocation, " bytes (physical memory), got ", bytes);
        // Whole huge pages: page faults would otherwise cost as much as a memory-bound kernel.
        const std::size_t unit = bytes >= kHugePage ? kHugePage : kPage;
        const std::size_t size = (bytes + unit - 1) / unit * unit;
        void* data = std::aligned_alloc(unit, size);
        check<OutOfMemoryError>(data != nullptr, "allocation: expected ", bytes, " bytes of free memory, got none");
#ifdef MADV_HUGEPAGE
        if (unit == kHugePage) madvise(data, size, MADV_HUGEPAGE);
#endif
        return {reinterpret_cast<Address>(data), size, data};
    }
    void release(const Memory& memory) noexcept override { std::free(memory.host); }

    void dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid,
                  std::span<const std::byte> args) override {
        if (!kernel.cpu) fail<NotImplementedError>(kernel.name, ": expected a kernel for cpu, got none");
        if (!profiling_) return kernel.cpu(args.data(), dtype, spec, grid);
        const std::uint64_t begin = now_ns();
        kernel.cpu(args.data(), dtype, spec, grid);
        spans_.push_back({kernel.name, begin, now_ns(), 0});
    }
    void copy(Address dst, Address src, std::size_t bytes) override {
        std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), bytes);
    }
    void barrier() override {}
    Timepoint submit() override { return 0; }
    bool reached(Timepoint) override { return true; }
    void wait(Timepoint) override {}
    bool synchronous() const override { return true; }
    void profile(bool on) override { profiling_ = on; }
    std::vector<GpuSpan> spans() override { return std::exchange(spans_, {}); }

  private:
    bool profiling_ = false;
    std::vector<GpuSpan> spans_;
    Limits limits_;
};

/// A child has none of the workers, yet its OpenMP would wait for them: at the next parallel loop, or when the forking
/// thread ends. So a fork first ends the thread's team, which is impossible inside a parallel loop only.
thread_local bool t_team_stays = false;

}  // namespace

int thread_count() {
    static const int threads = [] {
        pthread_atfork([] { t_team_stays = omp_pause_resource(omp_pause_soft, omp_get_initial_device()) != 0; },
                       nullptr,
                       [] {
                           if (t_team_stays) omp_set_num_threads(1);
                       });
        const int n = wanted_threads();
        omp_set_num_threads(n);
        return n;
    }();
    return std::min(threads, omp_get_max_threads());
}

DeviceRecord record() {
    return {.device = {}, .name = processor_name(), .type = "cpu", .driver = "OpenMP", .memory = physical_memory()};
}

std::unique_ptr<Backend> open() {
    thread_count();
    return std::make_unique<CpuBackend>();
}

}  // namespace vkml::cpu

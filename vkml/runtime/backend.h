#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vkml/core/device.h"
#include "vkml/core/error.h"
#include "vkml/core/storage.h"
#include "vkml/runtime/kernel.h"

/// The whole port to a new device. No operator is named here.
namespace vkml {

/// What a kernel choice may depend on. Sizes in bytes unless said.
struct Limits {
    std::uint32_t max_workgroup_invocations = 128;
    std::uint32_t max_workgroup_size[3] = {128, 128, 64};
    std::uint32_t max_grid[3] = {65535, 65535, 65535};
    std::uint32_t shared_memory = 16384;
    std::uint32_t subgroup_size = 1, min_subgroup_size = 1, max_subgroup_size = 1;
    bool subgroups_of_32 = false;  // kernels with cooperative matrices get them, whatever subgroup_size is
    std::uint64_t max_allocation = UINT64_MAX;
    std::uint64_t total_memory = 0;
    std::uint32_t compute_units = 0;             // 0: the device does not say
    bool f16_storage = true, i8_storage = true;  // can 16- and 8-bit elements be loaded and stored
    bool f16 = true, f64 = true, i64 = true;     // arithmetic
    bool denormals_f32 = true;                   // subnormal f32 kept by arithmetic
    struct CooperativeMatrix {
        std::uint32_t m, n, k;
        DType operand, accumulator;
    };
    std::vector<CooperativeMatrix> cooperative_matrices;  // subgroup scope
    bool matrix_conversions = false;                      // their sums become operands and are reduced in registers
};

/// Memory straight from the device; the pool cuts it into blocks.
struct Memory {
    Address address = 0;
    std::size_t bytes = 0;
    void* host = nullptr;  // mapped pointer, if the host can see it
};

/// Where memory shall lie. `host`: mapped, coherent and cached, for staging and flags. `shared`: the device's, and
/// another API on the same GPU can map it.
enum class MemoryKind : std::uint8_t { device, host, shared };

/// A position in a stream's submissions; reached when the device has finished everything submitted up to it.
using Timepoint = std::uint64_t;

/// One record per dispatch while profiling is on; times in nanoseconds on the device's clock.
struct GpuSpan {
    std::string_view label;
    std::uint64_t begin_ns = 0, end_ns = 0;
    Timepoint submission = 0;
};

/// Commands of one in-order queue. Calls come from one thread at a time: Stream holds the lock.
class Backend {
  public:
    virtual ~Backend() = default;

    virtual Device device() const = 0;
    virtual const Limits& limits() const = 0;

    /// Throws OutOfMemoryError with the bytes asked for and the limit that binds, by name.
    virtual Memory allocate(std::size_t bytes, MemoryKind kind) = 0;
    virtual void release(const Memory& memory) noexcept = 0;

    /// Records one dispatch after those recorded before, with no barrier of its own.
    /// Throws NotImplementedError when the kernel has no form for this dtype here.
    virtual void dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid,
                          std::span<const std::byte> args) = 0;
    /// Records a copy between device addresses; the ranges do not overlap.
    virtual void copy(Address dst, Address src, std::size_t bytes) = 0;
    /// Everything recorded later sees the writes of everything recorded earlier.
    virtual void barrier() = 0;
    /// Hands what was recorded to the device. Returns at once.
    virtual Timepoint submit() = 0;
    virtual bool reached(Timepoint point) = 0;
    /// Blocks until reached. May be called from several threads at once, also while another thread records.
    virtual void wait(Timepoint point) = 0;

    /// Where CUDA sees a range of `shared` memory; any thread may ask. Throws DeviceError where it sees none.
    virtual Address cuda_address(Address, std::size_t) {
        fail<DeviceError>("CUDA: expected a Vulkan device, got ", device());
    }

    /// Time stamps around every dispatch from now on, or no longer; `spans` hands out and clears what has finished.
    virtual void profile(bool) {}
    virtual std::vector<GpuSpan> spans() { return {}; }
    /// Pipelines built so far, and allocations taken from the device.
    virtual std::size_t pipeline_count() const { return 0; }
    /// True when commands have already run by the time the call returns (the CPU).
    virtual bool synchronous() const { return false; }
};

/// One entry of devices(). `why` says why it is unusable, or why it is not the default; empty when neither.
struct DeviceRecord {
    Device device;
    std::string name;
    std::string type;  // "discrete", "integrated", "virtual", "cpu"
    std::string driver;
    std::uint64_t memory = 0;
    bool usable = true;
    std::string why = {};
};

/// The seams to the backends: what hardware there is, and one of them opened. Defined in runtime/cpu and
/// runtime/vulkan.
namespace cpu {
DeviceRecord record();
std::unique_ptr<Backend> open();
}  // namespace cpu
namespace vulkan {
/// Every physical device, best first: discrete, integrated, virtual, CPU-type; unusable ones last. Never throws:
/// without a loader or a driver the list holds one unusable record that says why.
std::vector<DeviceRecord> records();
/// Opens the device at that position in records(). Throws DeviceError.
std::unique_ptr<Backend> open(int index);
/// Everything `device_info` shows beyond Limits: name -> text, as (key, value) pairs.
std::vector<std::pair<std::string, std::string>> info(int index);
}  // namespace vulkan

}  // namespace vkml

#pragma once
#include <memory>

#include "vkml/runtime/backend.h"
#include "vkml/runtime/vulkan/exit.h"

struct VkCommandBuffer_T;

namespace vkml::vulkan {

struct State;

/// The Vulkan port: everything it holds is in State, so that exit and a lost process can let go of it as one.
class VulkanBackend final : public Backend, ClosedAtExit {
  public:
    /// The device at `index` of instance().devices, which must be usable.
    explicit VulkanBackend(int index);
    ~VulkanBackend() override;

    Device device() const override { return device_; }
    const Limits& limits() const override { return limits_; }
    Memory allocate(std::size_t bytes, MemoryKind kind) override;
    void release(const Memory& memory) noexcept override;
    void dispatch(const Kernel& kernel, DType dtype, const Spec& spec, Grid grid,
                  std::span<const std::byte> args) override;
    void copy(Address dst, Address src, std::size_t bytes) override;
    void barrier() override;
    Timepoint submit() override;
    bool reached(Timepoint point) override;
    void wait(Timepoint point) override;
    Address cuda_address(Address address, std::size_t bytes) override;
    void profile(bool on) override;
    std::vector<GpuSpan> spans() override;
    std::size_t pipeline_count() const override;

  private:
    /// Throws DeviceError once the device is closed, lost, or another process's.
    State& state() const;
    VkCommandBuffer_T* commands(State& s);
    void close() noexcept override;

    Device device_;
    const Limits& limits_;
    std::unique_ptr<State> state_;
};

}  // namespace vkml::vulkan

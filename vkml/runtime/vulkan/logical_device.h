#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "vkml/runtime/vulkan/fork.h"
#include "vkml/runtime/vulkan/instance.h"

namespace vkml::vulkan {

/// A VkDevice with its one queue, and whether it can still be used.
class LogicalDevice {
  public:
    LogicalDevice(const Instance& instance, const PhysicalDevice& physical);
    ~LogicalDevice();
    LogicalDevice(const LogicalDevice&) = delete;

    const PhysicalDevice& physical;
    DeviceApi api;
    VkDevice handle = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    std::mutex queue_lock;  // submissions and sparse binds exclude each other

    /// Throws DeviceError when the device is lost or the process is a forked child.
    void check_alive() const {
        if (lost_.load(std::memory_order_relaxed) || fork_generation() != generation_) [[unlikely]]
            fail_dead();
    }
    /// Throws DeviceError on a failure and remembers a lost device.
    void check(VkResult result, std::string_view call);
    bool same_process() const { return fork_generation() == generation_; }

    /// With VKML_VULKAN_DEBUG=1: what tools and validation messages call the object.
    void name_object(VkObjectType type, std::uint64_t object, std::string_view name) const;
    /// Labels the commands that follow until end_label(); only where debug() holds.
    void begin_label(VkCommandBuffer commands, std::string_view name) const;
    void end_label(VkCommandBuffer commands) const { api.vkCmdEndDebugUtilsLabelEXT(commands); }
    bool debug() const { return debug_; }

  private:
    [[noreturn]] void fail_dead() const;

    std::uint32_t generation_;
    bool debug_ = false;
    std::atomic<bool> lost_{false};
};

/// The handle as vkSetDebugUtilsObjectNameEXT wants it, on 32-bit platforms too.
template <class Handle>
std::uint64_t handle_bits(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>)
        return reinterpret_cast<std::uintptr_t>(handle);
    else
        return handle;
}

}  // namespace vkml::vulkan

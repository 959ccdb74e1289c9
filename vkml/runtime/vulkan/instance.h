#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vkml/runtime/vulkan/api.h"
#include "vkml/runtime/vulkan/physical_device.h"

namespace vkml::vulkan {

/// The process's Vulkan instance and what it found; made at the first question about devices, never destroyed, because
/// devices may outlive every other static.
struct Instance {
    GlobalApi global;
    InstanceApi api;
    VkInstance handle = VK_NULL_HANDLE;
    bool debug_utils = false;
    std::uint32_t generation = 0;         // of fork.h
    std::string failure;                  // why there is no instance, or no device
    std::vector<PhysicalDevice> devices;  // best first, the unusable last

    Instance() = default;
    Instance(const Instance&) = delete;
};

/// Never throws: what went wrong is in `failure`.
const Instance& instance() noexcept;

}  // namespace vkml::vulkan

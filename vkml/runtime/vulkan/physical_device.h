#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vkml/runtime/backend.h"
#include "vkml/runtime/vulkan/api.h"
#include "vkml/runtime/vulkan/features.h"

namespace vkml::vulkan {

/// Of every buffer.
inline constexpr VkBufferUsageFlags kBufferUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                                   VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;

/// One physical device as it was found: what it can do, and what vkML will use of it.
struct PhysicalDevice {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties{};
    VkPhysicalDeviceVulkan11Properties vulkan11{};
    VkPhysicalDeviceVulkan12Properties vulkan12{};
    VkPhysicalDeviceVulkan13Properties vulkan13{};
    VkPhysicalDeviceMemoryProperties memory{};
    std::vector<std::string> extensions;  // all it offers
    Features features;                    // those to enable
    Limits limits;
    std::uint32_t queue_family = 0;
    VkQueueFamilyProperties queue{};
    bool shares_memory = false;     // its buffers can be exported as file descriptors
    bool shares_dedicated = false;  // and each then wants memory of its own kind
    std::string missing;            // the first mandatory thing it lacks; empty when usable

    bool usable() const { return missing.empty(); }
    /// 0 for the best kind: discrete, integrated, virtual, CPU, other.
    int rank() const;
    bool has_extension(const char* name) const;
    bool sparse() const {
        return features.core.features.sparseBinding && (queue.queueFlags & VK_QUEUE_SPARSE_BINDING_BIT);
    }
    /// Compute pipelines can ask for a subgroup size, whatever their workgroup.
    bool takes_subgroup_size() const;
    /// They get subgroups of 32 if they ask, or always.
    bool has_subgroups_of_32() const;
    /// Host and device share their memory.
    bool unified() const;
    /// Bytes of all device-local heaps.
    std::uint64_t local_memory() const;
};

PhysicalDevice describe(const InstanceApi& api, VkPhysicalDevice handle);

}  // namespace vkml::vulkan

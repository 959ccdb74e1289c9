#pragma once
#include <string_view>

#include "vkml/runtime/vulkan/logical_device.h"

namespace vkml::vulkan {

/// With VKML_VULKAN_DEBUG=1, where the driver tells: registers, spills, shared memory of a pipeline, to stderr.
void log_statistics(const LogicalDevice& device, VkPipeline pipeline, std::string_view name);

}  // namespace vkml::vulkan

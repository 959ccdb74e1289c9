#pragma once
#include <string_view>

#include "vkml/runtime/vulkan/compat.h"

namespace vkml::vulkan {

/// "VK_ERROR_DEVICE_LOST", or "a VkResult without a name".
std::string_view result_name(VkResult result);

/// Throws DeviceError "vulkan: <call>: expected VK_SUCCESS, got <result>" on a failure.
void check_result(VkResult result, std::string_view call);

}  // namespace vkml::vulkan

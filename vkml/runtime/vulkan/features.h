#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vkml/runtime/vulkan/api.h"

namespace vkml::vulkan {

/// The features vkML enables: everything it can use that the device has.
struct Features {
    VkPhysicalDeviceFeatures2 core{};
    VkPhysicalDeviceVulkan11Features vulkan11{};
    VkPhysicalDeviceVulkan12Features vulkan12{};
    VkPhysicalDeviceVulkan13Features vulkan13{};
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix{};
    VkPhysicalDeviceCooperativeMatrix2FeaturesNV cooperative_matrix2{};
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable_properties{};
    std::vector<const char*> extensions;  // to enable

    /// Chains the structures that `extensions` allow behind `core`, for a query or a device creation.
    VkPhysicalDeviceFeatures2* link();
    /// Whether modules that declare this SPIR-V capability may run. Capabilities unknown here are let through.
    bool allows(std::uint32_t capability) const;
    bool has_extension(std::string_view name) const;
};

/// Asks the device, which offers Vulkan 1.3 and the extensions listed, and keeps what vkML uses.
/// `missing` gets the name of the first mandatory feature the device lacks.
Features query_features(const InstanceApi& api, VkPhysicalDevice device, const std::vector<std::string>& offered,
                        std::string& missing);

/// The Vulkan feature behind a SPIR-V capability, for messages: "shaderFloat64".
std::string_view feature_name(std::uint32_t capability);

}  // namespace vkml::vulkan

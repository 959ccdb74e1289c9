#pragma once
#include "vkml/runtime/vulkan/compat.h"

/// The Vulkan functions vkML calls, loaded by name: linking needs no loader, and a device's functions skip the loader's
/// own dispatch.
namespace vkml::vulkan {

// clang-format off
#define VKML_GLOBAL_FUNCTIONS(X) \
    X(vkCreateInstance)          \
    X(vkEnumerateInstanceExtensionProperties) X(vkEnumerateInstanceLayerProperties) X(vkEnumerateInstanceVersion)

#define VKML_INSTANCE_FUNCTIONS(X)                                                                  \
    X(vkEnumeratePhysicalDevices) X(vkEnumerateDeviceExtensionProperties)                           \
    X(vkGetPhysicalDeviceProperties) X(vkGetPhysicalDeviceProperties2)                              \
    X(vkGetPhysicalDeviceFeatures2) X(vkGetPhysicalDeviceMemoryProperties)                          \
    X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkCreateDevice) X(vkGetDeviceProcAddr)            \
    X(vkGetPhysicalDeviceExternalBufferProperties)                                                  \
    /* optional */                                                                                  \
    X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) X(vkCreateDebugUtilsMessengerEXT)

#define VKML_DEVICE_FUNCTIONS(X)                                                                    \
    X(vkDestroyDevice) X(vkDeviceWaitIdle) X(vkGetDeviceQueue)                                      \
    X(vkQueueSubmit2) X(vkQueueBindSparse)                                                          \
    X(vkAllocateMemory) X(vkFreeMemory) X(vkMapMemory)                                              \
    X(vkCreateBuffer) X(vkDestroyBuffer) X(vkBindBufferMemory) X(vkGetBufferMemoryRequirements)     \
    X(vkGetBufferDeviceAddress)                                                                     \
    X(vkCreateSemaphore) X(vkDestroySemaphore) X(vkWaitSemaphores) X(vkGetSemaphoreCounterValue)    \
    X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkResetCommandPool)                            \
    X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer)                       \
    X(vkCmdBindPipeline) X(vkCmdPushConstants) X(vkCmdDispatch) X(vkCmdCopyBuffer)                  \
    X(vkCmdPipelineBarrier2) X(vkCmdWriteTimestamp2) X(vkCmdResetQueryPool)                         \
    X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkGetQueryPoolResults)                             \
    X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout)                                            \
    X(vkCreateShaderModule) X(vkDestroyShaderModule)                                                \
    X(vkCreateComputePipelines) X(vkDestroyPipeline)                                                \
    X(vkCreatePipelineCache) X(vkDestroyPipelineCache) X(vkGetPipelineCacheData)                    \
    X(vkMergePipelineCaches)                                                                        \
    /* optional */                                                                                  \
    X(vkSetDebugUtilsObjectNameEXT) X(vkCmdBeginDebugUtilsLabelEXT) X(vkCmdEndDebugUtilsLabelEXT)   \
    X(vkGetPipelineExecutablePropertiesKHR) X(vkGetPipelineExecutableStatisticsKHR)                 \
    X(vkGetMemoryFdKHR)
// clang-format on

#define VKML_DECLARE(name) PFN_##name name = nullptr;

/// Functions that need no instance.
struct GlobalApi {
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
    VKML_GLOBAL_FUNCTIONS(VKML_DECLARE)
};

struct InstanceApi {
    VKML_INSTANCE_FUNCTIONS(VKML_DECLARE)
};

struct DeviceApi {
    VKML_DEVICE_FUNCTIONS(VKML_DECLARE)
};

#undef VKML_DECLARE

/// Finds the loader. Throws DeviceError "no Vulkan loader: libvulkan.so.1 not found".
GlobalApi load_global();
InstanceApi load_instance(const GlobalApi& global, VkInstance instance);
DeviceApi load_device(const InstanceApi& api, VkDevice device);

}  // namespace vkml::vulkan

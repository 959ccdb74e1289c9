#include "vkml/runtime/vulkan/logical_device.h"

#include <string>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/environment.h"
#include "vkml/runtime/vulkan/result.h"

namespace vkml::vulkan {

LogicalDevice::LogicalDevice(const Instance& instance, const PhysicalDevice& physical)
    : physical(physical), generation_(fork_generation()) {
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                             .pNext = nullptr,
                                             .flags = 0,
                                             .queueFamilyIndex = physical.queue_family,
                                             .queueCount = 1,
                                             .pQueuePriorities = &priority};
    Features features = physical.features;
    const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                  .pNext = features.link(),
                                  .flags = 0,
                                  .queueCreateInfoCount = 1,
                                  .pQueueCreateInfos = &queue_info,
                                  .enabledLayerCount = 0,
                                  .ppEnabledLayerNames = nullptr,
                                  .enabledExtensionCount = static_cast<std::uint32_t>(features.extensions.size()),
                                  .ppEnabledExtensionNames = features.extensions.data(),
                                  .pEnabledFeatures = nullptr};
    check_result(instance.api.vkCreateDevice(physical.handle, &info, nullptr, &handle), "vkCreateDevice");
    api = load_device(instance.api, handle);
    api.vkGetDeviceQueue(handle, physical.queue_family, 0, &queue);
    debug_ = environment().debug && instance.debug_utils && api.vkCmdBeginDebugUtilsLabelEXT;
    name_object(VK_OBJECT_TYPE_QUEUE, handle_bits(queue), "vkml queue");
}

LogicalDevice::~LogicalDevice() { api.vkDestroyDevice(handle, nullptr); }

void LogicalDevice::check(VkResult result, std::string_view call) {
    if (result >= 0) [[likely]]
        return;
    if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
    check_result(result, call);
}

void LogicalDevice::fail_dead() const {
    check_same_process(generation_);
    fail<DeviceError>("vulkan: expected a working device, got ", physical.properties.deviceName,
                      ", lost in an earlier call (VK_ERROR_DEVICE_LOST)");
}

void LogicalDevice::name_object(VkObjectType type, std::uint64_t object, std::string_view name) const {
    if (!debug_) return;
    const std::string text(name);
    const VkDebugUtilsObjectNameInfoEXT info{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                             .pNext = nullptr,
                                             .objectType = type,
                                             .objectHandle = object,
                                             .pObjectName = text.c_str()};
    api.vkSetDebugUtilsObjectNameEXT(handle, &info);
}

void LogicalDevice::begin_label(VkCommandBuffer commands, std::string_view name) const {
    const std::string text(name);
    const VkDebugUtilsLabelEXT label{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pNext = nullptr, .pLabelName = text.c_str(), .color = {}};
    api.vkCmdBeginDebugUtilsLabelEXT(commands, &label);
}

}  // namespace vkml::vulkan

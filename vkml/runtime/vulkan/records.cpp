#include <string>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/fork.h"
#include "vkml/runtime/vulkan/instance.h"

namespace vkml::vulkan {

namespace {

std::string type_name(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return "discrete";
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return "integrated";
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return "virtual";
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return "cpu";
        default:
            return "other";
    }
}

std::string driver_text(const PhysicalDevice& d) {
    if (!d.vulkan12.driverName[0]) return concat("version ", d.properties.driverVersion);
    return concat(d.vulkan12.driverName, " ", d.vulkan12.driverInfo);
}

std::string why(const PhysicalDevice& d, int index) {
    if (!d.usable()) return d.missing;
    if (d.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) return "used only when named: it runs on the CPU";
    if (index > 0) return "used only when named: vulkan:0 ranks before it";
    return {};
}

DeviceRecord unusable(const std::string& why) {
    return {.device = {DeviceType::vulkan, 0},
            .name = "none",
            .type = "none",
            .driver = {},
            .memory = 0,
            .usable = false,
            .why = why};
}

}  // namespace

std::vector<DeviceRecord> records() {
    const Instance& found = instance();
    if (fork_generation() != found.generation) return {unusable(kForked)};
    if (!found.failure.empty()) return {unusable(found.failure)};
    std::vector<DeviceRecord> list;
    for (const PhysicalDevice& d : found.devices) {
        const int index = static_cast<int>(list.size());
        list.push_back({.device = {DeviceType::vulkan, static_cast<std::int16_t>(index)},
                        .name = d.properties.deviceName,
                        .type = type_name(d.properties.deviceType),
                        .driver = driver_text(d),
                        .memory = d.local_memory(),
                        .usable = d.usable(),
                        .why = why(d, index)});
    }
    return list;
}

}  // namespace vkml::vulkan

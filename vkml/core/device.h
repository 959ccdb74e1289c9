#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace vkml {

enum class DeviceType : std::uint8_t { cpu, vulkan };

/// Where a tensor lives: "cpu", or "vulkan:N" with N the position among the Vulkan devices; "vulkan" is the first.
struct Device {
    DeviceType type = DeviceType::cpu;
    std::int16_t index = 0;

    bool is_cpu() const { return type == DeviceType::cpu; }
    friend bool operator==(Device, Device) = default;
};

/// Parses "cpu", "vulkan" or "vulkan:N" without touching hardware. Throws DeviceError for anything else.
Device parse_device(std::string_view text);
/// "cpu" or "vulkan:0".
std::string to_string(Device d);

}  // namespace vkml

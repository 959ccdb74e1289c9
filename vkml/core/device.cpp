#include "vkml/core/device.h"

#include <charconv>

#include "vkml/core/error.h"

namespace vkml {

Device parse_device(std::string_view text) {
    if (text == "cpu") return {};
    constexpr std::string_view vulkan = "vulkan";
    if (text == vulkan) return {DeviceType::vulkan, 0};
    if (text.starts_with(vulkan) && text.size() > vulkan.size() + 1 && text[vulkan.size()] == ':') {
        const std::string_view digits = text.substr(vulkan.size() + 1);
        int index = -1;
        const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
        if (status == std::errc{} && end == digits.data() + digits.size() && index >= 0 && index < 1024)
            return {DeviceType::vulkan, static_cast<std::int16_t>(index)};
    }
    fail<DeviceError>("device: expected \"cpu\", \"vulkan\" (a GPU of any make) or \"vulkan:N\", got \"", text, "\"");
}

std::string to_string(Device d) { return d.is_cpu() ? "cpu" : "vulkan:" + std::to_string(d.index); }

}  // namespace vkml

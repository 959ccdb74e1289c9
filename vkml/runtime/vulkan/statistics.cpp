#include "vkml/runtime/vulkan/statistics.h"

#include <fmt/format.h>

#include <cstdio>
#include <vector>

namespace vkml::vulkan {

namespace {

std::string value_text(const VkPipelineExecutableStatisticKHR& s) {
    switch (s.format) {
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
            return s.value.b32 ? "true" : "false";
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
            return fmt::format("{}", s.value.i64);
        case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
            return fmt::format("{}", s.value.u64);
        default:
            return fmt::format("{}", s.value.f64);
    }
}

}  // namespace

void log_statistics(const LogicalDevice& device, VkPipeline pipeline, std::string_view name) {
    const VkPipelineInfoKHR whole{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pNext = nullptr, .pipeline = pipeline};
    std::uint32_t executables = 0;
    device.api.vkGetPipelineExecutablePropertiesKHR(device.handle, &whole, &executables, nullptr);
    std::string line;
    for (std::uint32_t i = 0; i < executables; i++) {
        const VkPipelineExecutableInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                               .pNext = nullptr,
                                               .pipeline = pipeline,
                                               .executableIndex = i};
        std::uint32_t count = 0;
        device.api.vkGetPipelineExecutableStatisticsKHR(device.handle, &info, &count, nullptr);
        VkPipelineExecutableStatisticKHR blank{};
        blank.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
        std::vector<VkPipelineExecutableStatisticKHR> list(count, blank);
        device.api.vkGetPipelineExecutableStatisticsKHR(device.handle, &info, &count, list.data());
        for (const auto& s : list) line += fmt::format(" {}={}", s.name, value_text(s));
    }
    std::fprintf(stderr, "vkml: pipeline %.*s:%s\n", static_cast<int>(name.size()), name.data(), line.c_str());
}

}  // namespace vkml::vulkan

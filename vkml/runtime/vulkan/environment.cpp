#include "vkml/runtime/vulkan/environment.h"

#include <cstdlib>

#include "vkml/runtime/configuration.h"

namespace vkml::vulkan {

namespace {

std::string cache_folder() {
    for (const Setting& s : configuration())
        if (s.name == "VKML_PIPELINE_CACHE" && s.set) return s.value;
    constexpr struct {
        const char* variable;
        const char* below;
    } places[] = {
        {"XDG_CACHE_HOME", "/vkml/pipelines"}, {"HOME", "/.cache/vkml/pipelines"}, {"LOCALAPPDATA", "/vkml/pipelines"}};
    for (const auto& place : places)
        if (const char* base = std::getenv(place.variable); base && *base) return std::string(base) + place.below;
    return {};
}

}  // namespace

const Environment& environment() {
    static const Environment values{
        .validation = setting_on("VKML_VULKAN_VALIDATION"),
        .debug = setting_on("VKML_VULKAN_DEBUG"),
        .dump = std::atoi(std::string(setting("VKML_VULKAN_DUMP")).c_str()),
        .min_spec = setting_on("VKML_MIN_SPEC"),
        .cache_folder = cache_folder(),
    };
    return values;
}

}  // namespace vkml::vulkan

#include "vkml/runtime/vulkan/environment.h"

#include <cstdlib>
#include <string_view>

namespace vkml::vulkan {

namespace {

std::string_view text(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool flag(const char* name) { return !text(name).empty() && text(name) != "0"; }

std::string cache_folder() {
    if (const char* folder = std::getenv("VKML_PIPELINE_CACHE")) return folder;
    if (auto base = text("XDG_CACHE_HOME"); !base.empty()) return std::string(base) + "/vkml/pipelines";
    if (auto base = text("HOME"); !base.empty()) return std::string(base) + "/.cache/vkml/pipelines";
    if (auto base = text("LOCALAPPDATA"); !base.empty()) return std::string(base) + "/vkml/pipelines";
    return {};
}

}  // namespace

const Environment& environment() {
    static const Environment values{
        .validation = flag("VKML_VULKAN_VALIDATION"),
        .debug = flag("VKML_VULKAN_DEBUG"),
        .dump = std::atoi(std::string(text("VKML_VULKAN_DUMP")).c_str()),
        .min_spec = flag("VKML_MIN_SPEC"),
        .cache_folder = cache_folder(),
    };
    return values;
}

}  // namespace vkml::vulkan

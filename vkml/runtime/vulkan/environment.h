#pragma once
#include <string>

/// The documented switches this backend reads, in the form it uses.
namespace vkml::vulkan {

struct Environment {
    bool validation = false;   // VKML_VULKAN_VALIDATION=1
    bool debug = false;        // VKML_VULKAN_DEBUG=1
    int dump = 0;              // VKML_VULKAN_DUMP=n
    bool min_spec = false;     // VKML_MIN_SPEC=1
    std::string cache_folder;  // VKML_PIPELINE_CACHE, or the user's cache folder; empty: no cache on disk
};

const Environment& environment();

}  // namespace vkml::vulkan

#include "vkml/runtime/configuration.h"

#include <cstdlib>

#include "vkml/core/error.h"

namespace vkml {
namespace {

constexpr const char* kNames[] = {
    "VKML_DEVICE",
    "VKML_THREADS",
    "VKML_EAGER",
    "VKML_LOG",
    "VKML_MIN_SPEC",
    "VKML_PIPELINE_CACHE",
    "VKML_VULKAN_DEBUG",
    "VKML_VULKAN_DUMP",
    "VKML_VULKAN_VALIDATION",
    "VKML_MATMUL_PRECISION",
    "VKML_GEMM_KERNEL",
    "VKML_GEMM_DB",
    "VKML_GEMM_PARTS",
    "VKML_GEMV",
    "VKML_GEMM_SPLITK",
    "VKML_GEMM_SPLITK_SPLITS",
    "VKML_CONV2D_PATH",
};

const std::vector<Setting>& settings() {
    static const auto* table = [] {
        auto* read = new std::vector<Setting>;
        for (const char* name : kNames) {
            const char* value = std::getenv(name);
            read->push_back({name, value ? value : "", value != nullptr});
        }
        return read;
    }();
    return *table;
}

}  // namespace

std::vector<Setting> configuration() { return settings(); }

std::string_view setting(std::string_view name) {
    for (const Setting& s : settings())
        if (s.name == name) return s.value;
    fail<Error>("configuration: expected a documented switch, got ", name);
}

bool setting_on(std::string_view name) {
    const std::string_view value = setting(name);
    return value == "1" || value == "true" || value == "on" || value == "yes";
}

}  // namespace vkml

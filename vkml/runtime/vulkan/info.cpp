#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/environment.h"
#include "vkml/runtime/vulkan/instance.h"

namespace vkml::vulkan {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string version(std::uint32_t v) {
    return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(v), VK_API_VERSION_MINOR(v), VK_API_VERSION_PATCH(v));
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::string hex(const std::uint8_t (&bytes)[VK_UUID_SIZE]) {
    std::string text;
    for (std::uint8_t b : bytes) text += fmt::format("{:02x}", b);
    return text;
}

std::string heaps(const VkPhysicalDeviceMemoryProperties& memory) {
    std::string text;
    for (std::uint32_t i = 0; i < memory.memoryHeapCount; i++) {
        const auto& heap = memory.memoryHeaps[i];
        text += fmt::format("{}{} MiB{}", i ? ", " : "", heap.size >> 20,
                            heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT ? " device local" : "");
    }
    return text;
}

std::string subgroup_operations(VkSubgroupFeatureFlags flags) {
    constexpr std::pair<VkSubgroupFeatureFlagBits, const char*> names[] = {
        {VK_SUBGROUP_FEATURE_BASIC_BIT, "basic"},
        {VK_SUBGROUP_FEATURE_VOTE_BIT, "vote"},
        {VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "arithmetic"},
        {VK_SUBGROUP_FEATURE_BALLOT_BIT, "ballot"},
        {VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "shuffle"},
        {VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT, "shuffle_relative"},
        {VK_SUBGROUP_FEATURE_CLUSTERED_BIT, "clustered"},
        {VK_SUBGROUP_FEATURE_QUAD_BIT, "quad"}};
    std::string text;
    for (auto [bit, name] : names)
        if (flags & bit) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
    return text;
}

std::string matrices(const std::vector<Limits::CooperativeMatrix>& list) {
    std::string text;
    for (const auto& m : list)
        text += fmt::format("{}{}x{}x{} {}->{}", text.empty() ? "" : ", ", m.m, m.n, m.k, name(m.operand),
                            name(m.accumulator));
    return text.empty() ? "none" : text;
}

void add_identity(Pairs& out, const PhysicalDevice& d) {
    out.emplace_back("vulkan", version(d.properties.apiVersion));
    out.emplace_back("driver_version", fmt::format("{:#x}", d.properties.driverVersion));
    out.emplace_back("vendor_id", fmt::format("{:#06x}", d.properties.vendorID));
    out.emplace_back("device_id", fmt::format("{:#06x}", d.properties.deviceID));
    out.emplace_back("device_uuid", hex(d.vulkan11.deviceUUID));
    out.emplace_back("validation", yes_no(environment().validation));
    out.emplace_back("min_spec", yes_no(environment().min_spec));
    out.emplace_back("pipeline_cache", environment().cache_folder.empty() ? "none" : environment().cache_folder);
}

void add_memory(Pairs& out, const PhysicalDevice& d) {
    const auto& limits = d.properties.limits;
    out.emplace_back("memory_heaps", heaps(d.memory));
    out.emplace_back("unified_memory", yes_no(d.unified()));
    out.emplace_back("max_memory_allocation_size", fmt::format("{}", d.vulkan11.maxMemoryAllocationSize));
    out.emplace_back("max_memory_allocation_count", fmt::format("{}", limits.maxMemoryAllocationCount));
    out.emplace_back("max_buffer_size", fmt::format("{}", d.vulkan13.maxBufferSize));
    out.emplace_back("sparse_binding", yes_no(d.sparse()));
    out.emplace_back("shares_memory", yes_no(d.shares_memory));
    out.emplace_back("max_push_constants_size", fmt::format("{}", limits.maxPushConstantsSize));
}

void add_execution(Pairs& out, const PhysicalDevice& d) {
    out.emplace_back("queue_family", fmt::format("{}", d.queue_family));
    out.emplace_back("timestamp_valid_bits", fmt::format("{}", d.queue.timestampValidBits));
    out.emplace_back("timestamp_period_ns", fmt::format("{}", d.properties.limits.timestampPeriod));
    out.emplace_back("subgroup_sizes", fmt::format("{} ({} to {})", d.limits.subgroup_size, d.limits.min_subgroup_size,
                                                   d.limits.max_subgroup_size));
    out.emplace_back("subgroup_operations", subgroup_operations(d.vulkan11.subgroupSupportedOperations));
    out.emplace_back("full_subgroups", yes_no(d.features.vulkan13.computeFullSubgroups));
}

void add_types(Pairs& out, const PhysicalDevice& d) {
    const Features& f = d.features;
    out.emplace_back("float16", yes_no(f.vulkan12.shaderFloat16));
    out.emplace_back("float64", yes_no(f.core.features.shaderFloat64));
    out.emplace_back("int8", yes_no(f.vulkan12.shaderInt8));
    out.emplace_back("int16", yes_no(f.core.features.shaderInt16));
    out.emplace_back("int64", yes_no(f.core.features.shaderInt64));
    out.emplace_back("storage_16bit", yes_no(f.vulkan11.storageBuffer16BitAccess));
    out.emplace_back("storage_8bit", yes_no(f.vulkan12.storageBuffer8BitAccess));
    out.emplace_back("bfloat16", yes_no(f.bfloat16.shaderBFloat16Type));
    out.emplace_back("denorm_preserve_float32", yes_no(d.vulkan12.shaderDenormPreserveFloat32));
    out.emplace_back("cooperative_matrices", matrices(d.limits.cooperative_matrices));
    out.emplace_back("matrix_conversions", yes_no(d.limits.matrix_conversions));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> info(int index) {
    const Instance& found = instance();
    check<DeviceError>(index >= 0 && index < static_cast<int>(found.devices.size()), "vulkan: expected an index below ",
                       found.devices.size(), ", got ", index);
    const PhysicalDevice& d = found.devices[index];
    Pairs out;
    add_identity(out, d);
    if (!d.usable()) {
        out.emplace_back("missing", d.missing);
        return out;
    }
    add_memory(out, d);
    add_execution(out, d);
    add_types(out, d);
    return out;
}

}  // namespace vkml::vulkan

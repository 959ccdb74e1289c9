#include "vkml/runtime/vulkan/physical_device.h"

#include <algorithm>
#include <cstring>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/environment.h"

namespace vkml::vulkan {

namespace {

std::vector<std::string> extensions_of(const InstanceApi& api, VkPhysicalDevice device) {
    std::uint32_t count = 0;
    api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> list(count);
    api.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list.data());
    list.resize(count);
    std::vector<std::string> names;
    for (const auto& e : list) names.emplace_back(e.extensionName);
    return names;
}

// A family without graphics leaves the display's own work alone; sparse binding matters more, and any will do.
bool choose_queue(const InstanceApi& api, PhysicalDevice& d) {
    std::uint32_t count = 0;
    api.vkGetPhysicalDeviceQueueFamilyProperties(d.handle, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    api.vkGetPhysicalDeviceQueueFamilyProperties(d.handle, &count, families.data());
    int best = -1;
    for (std::uint32_t i = 0; i < count; i++) {
        const VkQueueFlags flags = families[i].queueFlags;
        if (!(flags & VK_QUEUE_COMPUTE_BIT) || families[i].queueCount == 0) continue;
        const int score = (flags & VK_QUEUE_SPARSE_BINDING_BIT ? 4 : 0) + (families[i].timestampValidBits ? 2 : 0) +
                          (flags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);
        if (score <= best) continue;
        best = score;
        d.queue_family = i;
        d.queue = families[i];
    }
    return best >= 0;
}

DType component_dtype(VkComponentTypeKHR type) {
    switch (static_cast<std::uint32_t>(type)) {
        case VK_COMPONENT_TYPE_FLOAT16_KHR:
            return DType::f16;
        case VK_COMPONENT_TYPE_FLOAT32_KHR:
            return DType::f32;
        case VK_COMPONENT_TYPE_FLOAT64_KHR:
            return DType::f64;
        case VK_COMPONENT_TYPE_SINT8_KHR:
            return DType::i8;
        case VK_COMPONENT_TYPE_SINT16_KHR:
            return DType::i16;
        case VK_COMPONENT_TYPE_SINT32_KHR:
            return DType::i32;
        case VK_COMPONENT_TYPE_SINT64_KHR:
            return DType::i64;
        case VK_COMPONENT_TYPE_UINT8_KHR:
            return DType::u8;
        case static_cast<std::uint32_t>(VK_COMPONENT_TYPE_BFLOAT16_KHR):
            return DType::bf16;
        default:
            return DType::none;
    }
}

std::vector<Limits::CooperativeMatrix> cooperative_matrices(const InstanceApi& api, const PhysicalDevice& d) {
    if (!d.features.cooperative_matrix.cooperativeMatrix || !api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
        return {};
    std::uint32_t count = 0;
    api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(d.handle, &count, nullptr);
    VkCooperativeMatrixPropertiesKHR blank{};
    blank.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    std::vector<VkCooperativeMatrixPropertiesKHR> offered(count, blank);
    api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(d.handle, &count, offered.data());
    offered.resize(count);
    std::vector<Limits::CooperativeMatrix> list;
    for (const auto& m : offered) {
        const DType operand = component_dtype(m.AType), accumulator = component_dtype(m.CType);
        if (m.scope != VK_SCOPE_SUBGROUP_KHR || m.AType != m.BType || m.CType != m.ResultType ||
            m.saturatingAccumulation)
            continue;
        if (operand == DType::none || accumulator == DType::none) continue;
        if (operand == DType::bf16 && !d.features.bfloat16.shaderBFloat16CooperativeMatrix) continue;
        list.push_back({m.MSize, m.NSize, m.KSize, operand, accumulator});
    }
    return list;
}

std::uint32_t compute_units(const InstanceApi& api, const PhysicalDevice& d) {
    VkPhysicalDeviceProperties2 query{};
    query.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    if (d.has_extension(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
        VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv{};
        nv.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
        query.pNext = &nv;
        api.vkGetPhysicalDeviceProperties2(d.handle, &query);
        return nv.shaderSMCount;
    }
    if (d.has_extension(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
        VkPhysicalDeviceShaderCorePropertiesAMD amd{};
        amd.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
        query.pNext = &amd;
        api.vkGetPhysicalDeviceProperties2(d.handle, &query);
        return amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
    }
    if (d.has_extension(VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME)) {
        VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm{};
        arm.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM;
        query.pNext = &arm;
        api.vkGetPhysicalDeviceProperties2(d.handle, &query);
        return arm.shaderCoreCount;
    }
    return 0;
}

// What Vulkan 1.3 guarantees, and no more.
void clamp_to_minimum(Limits& l) {
    constexpr std::uint32_t workgroup[3] = {128, 128, 64};
    l.max_workgroup_invocations = std::min(l.max_workgroup_invocations, 128u);
    for (int i = 0; i < 3; i++) {
        l.max_workgroup_size[i] = std::min(l.max_workgroup_size[i], workgroup[i]);
        l.max_grid[i] = std::min(l.max_grid[i], 65535u);
    }
    l.shared_memory = std::min(l.shared_memory, 16384u);
    l.max_allocation = std::min(l.max_allocation, std::uint64_t{1} << 30);
    l.compute_units = 0;
    l.cooperative_matrices.clear();
    l.matrix_conversions = false;
}

Limits limits_of(const InstanceApi& api, const PhysicalDevice& d) {
    const VkPhysicalDeviceLimits& v = d.properties.limits;
    const auto& core = d.features.core.features;
    Limits l;
    l.max_workgroup_invocations = v.maxComputeWorkGroupInvocations;
    std::copy_n(v.maxComputeWorkGroupSize, 3, l.max_workgroup_size);
    std::copy_n(v.maxComputeWorkGroupCount, 3, l.max_grid);
    l.shared_memory = v.maxComputeSharedMemorySize;
    l.subgroup_size = d.vulkan11.subgroupSize;
    l.min_subgroup_size = d.vulkan13.minSubgroupSize ? d.vulkan13.minSubgroupSize : l.subgroup_size;
    l.max_subgroup_size = d.vulkan13.maxSubgroupSize ? d.vulkan13.maxSubgroupSize : l.subgroup_size;
    l.subgroups_of_32 = d.has_subgroups_of_32();
    l.max_allocation = d.sparse()
                           ? std::min<std::uint64_t>(v.sparseAddressSpaceSize, d.vulkan13.maxBufferSize)
                           : std::min<std::uint64_t>(d.vulkan11.maxMemoryAllocationSize, d.vulkan13.maxBufferSize);
    l.total_memory = d.local_memory();
    l.compute_units = compute_units(api, d);
    l.f16_storage = d.features.vulkan11.storageBuffer16BitAccess;
    l.i8_storage = d.features.vulkan12.storageBuffer8BitAccess;
    l.f16 = d.features.vulkan12.shaderFloat16;
    l.f64 = core.shaderFloat64;
    l.i64 = core.shaderInt64;
    l.denormals_f32 = d.vulkan12.shaderDenormPreserveFloat32;
    l.cooperative_matrices = cooperative_matrices(api, d);
    l.matrix_conversions = d.features.cooperative_matrix2.cooperativeMatrixConversions &&
                           d.features.cooperative_matrix2.cooperativeMatrixReductions;
    if (environment().min_spec) clamp_to_minimum(l);
    return l;
}

void query_sharing(const InstanceApi& api, PhysicalDevice& d) {
    if (!d.features.has_extension(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) return;
    const VkPhysicalDeviceExternalBufferInfo info{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
                                                  .pNext = nullptr,
                                                  .flags = 0,
                                                  .usage = kBufferUsage,
                                                  .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkExternalBufferProperties found{};
    found.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    api.vkGetPhysicalDeviceExternalBufferProperties(d.handle, &info, &found);
    const VkExternalMemoryFeatureFlags features = found.externalMemoryProperties.externalMemoryFeatures;
    d.shares_memory = features & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT;
    d.shares_dedicated = features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
}

std::string version_text(std::uint32_t v) { return concat(VK_API_VERSION_MAJOR(v), ".", VK_API_VERSION_MINOR(v)); }

void query_properties(const InstanceApi& api, PhysicalDevice& d) {
    d.vulkan13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
    d.vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    d.vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    d.vulkan11.pNext = &d.vulkan12;
    d.vulkan12.pNext = &d.vulkan13;
    VkPhysicalDeviceProperties2 query{};
    query.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    query.pNext = &d.vulkan11;
    api.vkGetPhysicalDeviceProperties2(d.handle, &query);
    d.vulkan11.pNext = d.vulkan12.pNext = nullptr;  // the structure moves
}

}  // namespace

int PhysicalDevice::rank() const {
    switch (properties.deviceType) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return 0;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return 1;
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return 2;
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return 3;
        default:
            return 4;
    }
}

bool PhysicalDevice::has_extension(const char* name) const {
    return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
}

bool PhysicalDevice::takes_subgroup_size() const {
    return features.vulkan13.subgroupSizeControl &&
           (vulkan13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
           std::uint64_t{vulkan13.maxComputeWorkgroupSubgroups} * vulkan13.minSubgroupSize >=
               properties.limits.maxComputeWorkGroupInvocations;
}

bool PhysicalDevice::has_subgroups_of_32() const {
    const std::uint32_t least = vulkan13.minSubgroupSize ? vulkan13.minSubgroupSize : vulkan11.subgroupSize;
    const std::uint32_t most = vulkan13.maxSubgroupSize ? vulkan13.maxSubgroupSize : vulkan11.subgroupSize;
    return least <= 32 && most >= 32 && (least == most || takes_subgroup_size());
}

bool PhysicalDevice::unified() const {
    return properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
           properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

std::uint64_t PhysicalDevice::local_memory() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) bytes += memory.memoryHeaps[i].size;
    return bytes;
}

PhysicalDevice describe(const InstanceApi& api, VkPhysicalDevice handle) {
    PhysicalDevice d;
    d.handle = handle;
    api.vkGetPhysicalDeviceProperties(handle, &d.properties);
    api.vkGetPhysicalDeviceMemoryProperties(handle, &d.memory);
    const std::uint32_t version = d.properties.apiVersion;
    if (version < VK_API_VERSION_1_3) {
        d.missing = "expected Vulkan 1.3, got " + version_text(version);
        return d;
    }
    query_properties(api, d);
    d.extensions = extensions_of(api, handle);
    std::string feature;
    d.features = query_features(api, handle, d.extensions, feature);
    if (!feature.empty()) d.missing = "expected the feature " + feature + ", got a device without it";
    if (!choose_queue(api, d)) d.missing = "expected a queue with compute, got none";
    d.limits = limits_of(api, d);
    query_sharing(api, d);
    return d;
}

}  // namespace vkml::vulkan

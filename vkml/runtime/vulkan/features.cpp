#include "vkml/runtime/vulkan/features.h"

#include <algorithm>

#include "vkml/runtime/vulkan/environment.h"

namespace vkml::vulkan {

namespace {

enum Need : bool { optional, mandatory };

template <class Struct>
struct Wanted {
    VkBool32 Struct::* feature;
    const char* name;
    Need need;
};

using Core = VkPhysicalDeviceFeatures;
using V11 = VkPhysicalDeviceVulkan11Features;
using V12 = VkPhysicalDeviceVulkan12Features;
using V13 = VkPhysicalDeviceVulkan13Features;

#define VKML_WANT(Struct, feature, need) {&Struct::feature, #feature, need}

constexpr Wanted<Core> wanted_core[] = {
    VKML_WANT(Core, shaderInt64, mandatory),  // address arithmetic in every kernel
    VKML_WANT(Core, shaderInt16, optional),
    VKML_WANT(Core, shaderFloat64, optional),
    VKML_WANT(Core, sparseBinding, optional),
};
constexpr Wanted<V11> wanted11[] = {
    VKML_WANT(V11, storageBuffer16BitAccess, optional), VKML_WANT(V11, uniformAndStorageBuffer16BitAccess, optional),
    VKML_WANT(V11, storagePushConstant16, optional),    VKML_WANT(V11, variablePointersStorageBuffer, optional),
    VKML_WANT(V11, variablePointers, optional),
};
constexpr Wanted<V12> wanted12[] = {
    VKML_WANT(V12, bufferDeviceAddress, mandatory),
    VKML_WANT(V12, timelineSemaphore, mandatory),
    VKML_WANT(V12, scalarBlockLayout, mandatory),
    VKML_WANT(V12, vulkanMemoryModel, optional),
    VKML_WANT(V12, vulkanMemoryModelDeviceScope, optional),
    VKML_WANT(V12, storageBuffer8BitAccess, optional),
    VKML_WANT(V12, uniformAndStorageBuffer8BitAccess, optional),
    VKML_WANT(V12, storagePushConstant8, optional),
    VKML_WANT(V12, shaderBufferInt64Atomics, optional),
    VKML_WANT(V12, shaderSharedInt64Atomics, optional),
    VKML_WANT(V12, shaderFloat16, optional),
    VKML_WANT(V12, shaderInt8, optional),
    VKML_WANT(V12, shaderSubgroupExtendedTypes, optional),
    VKML_WANT(V12, subgroupBroadcastDynamicId, optional),
};
constexpr Wanted<V13> wanted13[] = {
    VKML_WANT(V13, synchronization2, mandatory),
    VKML_WANT(V13, maintenance4, mandatory),  // workgroup sizes by specialization constant
    VKML_WANT(V13, subgroupSizeControl, optional),
    VKML_WANT(V13, computeFullSubgroups, optional),
    VKML_WANT(V13, shaderIntegerDotProduct, optional),
    VKML_WANT(V13, shaderZeroInitializeWorkgroupMemory, optional),
};
#undef VKML_WANT

template <class Struct, std::size_t N>
void keep(const Struct& offered, Struct& kept, const Wanted<Struct> (&wanted)[N], std::string& missing) {
    for (const auto& w : wanted) {
        kept.*w.feature = offered.*w.feature;
        if (w.need == mandatory && !(offered.*w.feature) && missing.empty()) missing = w.name;
    }
}

struct Capability {
    std::uint32_t capability;
    const char* feature;
    bool (*enabled)(const Features&);
};

constexpr Capability capabilities[] = {
    {9, "shaderFloat16", [](const Features& f) { return f.vulkan12.shaderFloat16 != 0; }},
    {10, "shaderFloat64", [](const Features& f) { return f.core.features.shaderFloat64 != 0; }},
    {11, "shaderInt64", [](const Features& f) { return f.core.features.shaderInt64 != 0; }},
    {12, "shaderBufferInt64Atomics", [](const Features& f) { return f.vulkan12.shaderBufferInt64Atomics != 0; }},
    {22, "shaderInt16", [](const Features& f) { return f.core.features.shaderInt16 != 0; }},
    {39, "shaderInt8", [](const Features& f) { return f.vulkan12.shaderInt8 != 0; }},
    {4433, "storageBuffer16BitAccess", [](const Features& f) { return f.vulkan11.storageBuffer16BitAccess != 0; }},
    {4434, "uniformAndStorageBuffer16BitAccess",
     [](const Features& f) { return f.vulkan11.uniformAndStorageBuffer16BitAccess != 0; }},
    {4435, "storagePushConstant16", [](const Features& f) { return f.vulkan11.storagePushConstant16 != 0; }},
    {4441, "variablePointersStorageBuffer",
     [](const Features& f) { return f.vulkan11.variablePointersStorageBuffer != 0; }},
    {4442, "variablePointers", [](const Features& f) { return f.vulkan11.variablePointers != 0; }},
    {4448, "storageBuffer8BitAccess", [](const Features& f) { return f.vulkan12.storageBuffer8BitAccess != 0; }},
    {4449, "uniformAndStorageBuffer8BitAccess",
     [](const Features& f) { return f.vulkan12.uniformAndStorageBuffer8BitAccess != 0; }},
    {4450, "storagePushConstant8", [](const Features& f) { return f.vulkan12.storagePushConstant8 != 0; }},
    {5116, "shaderBFloat16Type", [](const Features& f) { return f.bfloat16.shaderBFloat16Type != 0; }},
    {5117, "shaderBFloat16DotProduct", [](const Features& f) { return f.bfloat16.shaderBFloat16DotProduct != 0; }},
    {5118, "shaderBFloat16CooperativeMatrix",
     [](const Features& f) { return f.bfloat16.shaderBFloat16CooperativeMatrix != 0; }},
    {5430, "cooperativeMatrixReductions",
     [](const Features& f) { return f.cooperative_matrix2.cooperativeMatrixReductions != 0; }},
    {5431, "cooperativeMatrixConversions",
     [](const Features& f) { return f.cooperative_matrix2.cooperativeMatrixConversions != 0; }},
    {5345, "vulkanMemoryModel", [](const Features& f) { return f.vulkan12.vulkanMemoryModel != 0; }},
    {5346, "vulkanMemoryModelDeviceScope",
     [](const Features& f) { return f.vulkan12.vulkanMemoryModelDeviceScope != 0; }},
    {6019, "shaderIntegerDotProduct", [](const Features& f) { return f.vulkan13.shaderIntegerDotProduct != 0; }},
    {6022, "cooperativeMatrix", [](const Features& f) { return f.cooperative_matrix.cooperativeMatrix != 0; }},
};

const Capability* find(std::uint32_t capability) {
    const auto* found = std::find_if(std::begin(capabilities), std::end(capabilities),
                                     [&](const Capability& c) { return c.capability == capability; });
    return found == std::end(capabilities) ? nullptr : found;
}

}  // namespace

VkPhysicalDeviceFeatures2* Features::link() {
    void* tail = nullptr;
    auto chain = [&](auto& part, VkStructureType type) {
        part.sType = type;
        part.pNext = tail;
        tail = &part;
    };
    if (has_extension(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
        chain(executable_properties, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
    if (has_extension(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        chain(bfloat16, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
    if (has_extension(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        chain(cooperative_matrix, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
    if (has_extension(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME))
        chain(cooperative_matrix2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
    chain(vulkan13, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES);
    chain(vulkan12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    chain(vulkan11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    chain(core, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
    return &core;
}

bool Features::has_extension(std::string_view name) const {
    return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
}

bool Features::allows(std::uint32_t capability) const {
    const Capability* known = find(capability);
    return !known || known->enabled(*this);
}

std::string_view feature_name(std::uint32_t capability) {
    const Capability* known = find(capability);
    return known ? known->feature : "a capability without a name";
}

Features query_features(const InstanceApi& api, VkPhysicalDevice device, const std::vector<std::string>& offered,
                        std::string& missing) {
    auto offers = [&](const char* name) { return std::find(offered.begin(), offered.end(), name) != offered.end(); };
    Features all;
    if (!environment().min_spec)
        for (const char* name : {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
                                 VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME})
            if (offers(name)) all.extensions.push_back(name);
    if (environment().debug && offers(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
        all.extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    if (offers(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        all.extensions.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    // A device that offers it must have it enabled.
    if (offers(VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME))
        all.extensions.push_back(VK_KHR_PORTABILITY_SUBSET_EXTENSION_NAME);
    api.vkGetPhysicalDeviceFeatures2(device, all.link());

    Features kept;
    kept.extensions = all.extensions;
    keep(all.core.features, kept.core.features, wanted_core, missing);
    if (environment().min_spec) kept.core.features.sparseBinding = VK_FALSE;
    keep(all.vulkan11, kept.vulkan11, wanted11, missing);
    keep(all.vulkan12, kept.vulkan12, wanted12, missing);
    keep(all.vulkan13, kept.vulkan13, wanted13, missing);
    kept.cooperative_matrix.cooperativeMatrix = all.cooperative_matrix.cooperativeMatrix;
    kept.cooperative_matrix2.cooperativeMatrixReductions = all.cooperative_matrix2.cooperativeMatrixReductions;
    kept.cooperative_matrix2.cooperativeMatrixConversions = all.cooperative_matrix2.cooperativeMatrixConversions;
    kept.bfloat16 = all.bfloat16;
    kept.executable_properties = all.executable_properties;
    return kept;
}

}  // namespace vkml::vulkan

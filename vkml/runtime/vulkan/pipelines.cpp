#include "vkml/runtime/vulkan/pipelines.h"

#include <algorithm>
#include <array>
#include <string>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/result.h"
#include "vkml/runtime/vulkan/spirv.h"
#include "vkml/runtime/vulkan/statistics.h"

namespace vkml::vulkan {

namespace {

std::size_t hash(const Kernel& kernel, DType dtype, const Spec& spec) {
    std::uint64_t h = reinterpret_cast<std::uintptr_t>(&kernel) ^ static_cast<std::uint64_t>(dtype) << 56;
    for (std::uint32_t v : spec.values()) h = (h ^ v) * 0x9e3779b97f4a7c15;
    h *= 0x9e3779b97f4a7c15;
    return h ^ h >> 32;
}

constexpr std::uint32_t kCooperativeMatrixCapability = 6022;

/// What storing elements of this type takes, which modules do not always declare.
const char* missing_storage(const Limits& limits, DType dtype) {
    if (itemsize(dtype) == 2 && !limits.f16_storage) return "storageBuffer16BitAccess";
    if (itemsize(dtype) == 1 && !limits.i8_storage) return "storageBuffer8BitAccess";
    return nullptr;
}

}  // namespace

Pipelines::Pipelines(LogicalDevice& device) : device_(device), cache_(device), entries_(64) {
    push_constant_bytes_ = std::min(256u, device.physical.properties.limits.maxPushConstantsSize);
    const VkPushConstantRange range{
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = push_constant_bytes_};
    const VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                          .pNext = nullptr,
                                          .flags = 0,
                                          .setLayoutCount = 0,
                                          .pSetLayouts = nullptr,
                                          .pushConstantRangeCount = 1,
                                          .pPushConstantRanges = &range};
    device.check(device.api.vkCreatePipelineLayout(device.handle, &info, nullptr, &layout_), "vkCreatePipelineLayout");
}

Pipelines::~Pipelines() {
    for (const Entry& e : entries_) device_.api.vkDestroyPipeline(device_.handle, e.pipeline, nullptr);
    device_.api.vkDestroyPipelineLayout(device_.handle, layout_, nullptr);
}

std::size_t Pipelines::find(const Kernel& kernel, DType dtype, const Spec& spec) const {
    const std::size_t mask = entries_.size() - 1;
    for (std::size_t i = hash(kernel, dtype, spec) & mask;; i = (i + 1) & mask) {
        const Entry& e = entries_[i];
        if (!e.kernel || (e.kernel == &kernel && e.dtype == dtype && e.spec == spec)) return i;
    }
}

VkPipeline Pipelines::look_up(const Kernel& kernel, DType dtype, const Spec& spec) {
    std::size_t i = find(kernel, dtype, spec);
    if (!entries_[i].kernel) [[unlikely]] {
        const VkPipeline pipeline = build(kernel, dtype, spec);
        if (2 * (count_ + 1) > entries_.size()) {
            grow();
            i = find(kernel, dtype, spec);
        }
        entries_[i] = {&kernel, pipeline, dtype, spec};
        count_++;
        cache_.mark_changed();
    }
    last_ = i;
    return entries_[i].pipeline;
}

void Pipelines::grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& e : old)
        if (e.kernel) entries_[find(*e.kernel, e.dtype, e.spec)] = e;
}

const Spirv& Pipelines::module_for(const Kernel& kernel, DType dtype) const {
    const Spirv* module = nullptr;
    for (const Spirv& m : kernel.modules)
        if (m.dtype == dtype || (m.dtype == DType::none && !module)) module = &m;
    const char* device = device_.physical.properties.deviceName;
    check<NotImplementedError>(module, kernel.name, ": no kernel for ", dtype, " on ", device);
    if (const char* feature = missing_storage(device_.physical.limits, dtype))
        fail<NotImplementedError>(kernel.name, ": no kernel for ", dtype, " on ", device, ", which lacks ", feature);
    const Features& features = device_.physical.features;
    const std::int64_t refused = refused_capability(module->code, [&](std::uint32_t c) { return features.allows(c); });
    if (refused >= 0)
        fail<NotImplementedError>(kernel.name, ": no kernel for ", dtype, " on ", device, ", which lacks ",
                                  feature_name(static_cast<std::uint32_t>(refused)));
    return *module;
}

// The subgroup size to ask for; 0: the driver's choice. Kernels on cooperative matrices are written for 32.
std::uint32_t Pipelines::asked_subgroup(const Spirv& module) const {
    if (!device_.physical.limits.subgroups_of_32 || !device_.physical.takes_subgroup_size()) return 0;
    const auto other = [](std::uint32_t capability) { return capability != kCooperativeMatrixCapability; };
    return refused_capability(module.code, other) >= 0 ? 32 : 0;
}

// Full subgroups can be asked for only when they divide the workgroup.
VkPipelineShaderStageCreateFlags Pipelines::stage_flags(const Spirv& module, const Spec& spec) const {
    const std::uint32_t x = local_size_x(module.code, spec), asked = asked_subgroup(module);
    const std::uint32_t subgroup = asked ? asked : device_.physical.limits.subgroup_size;
    const bool safe = device_.physical.features.vulkan13.computeFullSubgroups && x && x % subgroup == 0;
    return safe ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0;
}

// The driver would answer a failure without words; under VKML_MIN_SPEC=1 it would answer nothing at all.
void Pipelines::check_limits(const Kernel& kernel, const Spirv& module, const Spec& spec) const {
    const Limits& limits = device_.physical.limits;
    const std::uint32_t threads = local_size_x(module.code, spec);
    check<Error>(threads <= limits.max_workgroup_invocations, kernel.name, ": expected at most ",
                 limits.max_workgroup_invocations, " invocations in a workgroup, got ", threads);
    const std::uint64_t shared = shared_bytes(module.code, spec);
    check<Error>(shared <= limits.shared_memory, kernel.name, ": expected at most ", limits.shared_memory,
                 " bytes of shared memory, got ", shared);
}

VkResult Pipelines::create_module(const Spirv& module, VkShaderModule& shader) const {
    // Kernels ask for subnormals where they matter; a device that cannot promise them runs the rest of the kernel.
    std::span<const std::uint32_t> words = module.code;
    std::vector<std::uint32_t> plain;
    if (!device_.physical.vulkan12.shaderDenormPreserveFloat32) words = plain = without_denorm_preserve(words);
    const VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                        .pNext = nullptr,
                                        .flags = 0,
                                        .codeSize = words.size_bytes(),
                                        .pCode = words.data()};
    return device_.api.vkCreateShaderModule(device_.handle, &info, nullptr, &shader);
}

VkPipeline Pipelines::build(const Kernel& kernel, DType dtype, const Spec& spec) {
    const Spirv& module = module_for(kernel, dtype);
    check_limits(kernel, module, spec);
    auto require = [&](VkResult result) {
        device_.check(result == VK_ERROR_DEVICE_LOST ? result : VK_SUCCESS, "vkCreateComputePipelines");
        check<Error>(result == VK_SUCCESS, kernel.name, ": expected a pipeline for ", dtype, ", got ",
                     result_name(result), " (", static_cast<int>(result), ")");
    };
    VkShaderModule shader = VK_NULL_HANDLE;
    require(create_module(module, shader));

    std::array<VkSpecializationMapEntry, Spec::kMax> map;
    for (std::uint32_t i = 0; i < Spec::kMax; i++) map[i] = {.constantID = i, .offset = 4 * i, .size = 4};
    const VkSpecializationInfo constants{.mapEntryCount = static_cast<std::uint32_t>(spec.size()),
                                         .pMapEntries = map.data(),
                                         .dataSize = spec.values().size_bytes(),
                                         .pData = spec.values().data()};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .pNext = nullptr,
        .requiredSubgroupSize = asked_subgroup(module)};
    const std::string entry(kernel.name);
    const bool statistics = device_.physical.features.executable_properties.pipelineExecutableInfo;
    const VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = nullptr,
        .flags = statistics ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR} : 0,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = subgroup.requiredSubgroupSize ? &subgroup : nullptr,
                  .flags = stage_flags(module, spec),
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = shader,
                  .pName = entry.c_str(),
                  .pSpecializationInfo = &constants},
        .layout = layout_,
        .basePipelineHandle = VK_NULL_HANDLE,
        .basePipelineIndex = -1};
    VkPipeline pipeline = VK_NULL_HANDLE;
    const VkResult result =
        device_.api.vkCreateComputePipelines(device_.handle, cache_.handle(), 1, &info, nullptr, &pipeline);
    device_.api.vkDestroyShaderModule(device_.handle, shader, nullptr);
    require(result);
    device_.name_object(VK_OBJECT_TYPE_PIPELINE, handle_bits(pipeline), concat(kernel.name, " ", dtype));
    if (statistics) log_statistics(device_, pipeline, concat(kernel.name, " ", dtype));
    return pipeline;
}

}  // namespace vkml::vulkan

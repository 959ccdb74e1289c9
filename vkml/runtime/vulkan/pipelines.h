#pragma once
#include <cstddef>
#include <vector>

#include "vkml/runtime/vulkan/logical_device.h"
#include "vkml/runtime/vulkan/pipeline_cache.h"

namespace vkml::vulkan {

/// Compute pipelines by kernel, dtype and specialization, built at first use.
class Pipelines {
  public:
    explicit Pipelines(LogicalDevice& device);
    ~Pipelines();
    Pipelines(const Pipelines&) = delete;

    /// Throws NotImplementedError when the kernel has no form for the dtype on this device, Error when the driver
    /// refuses it.
    VkPipeline get(const Kernel& kernel, DType dtype, const Spec& spec) {
        const Entry& last = entries_[last_];
        if (last.kernel == &kernel && last.dtype == dtype && last.spec == spec) [[likely]]
            return last.pipeline;
        return look_up(kernel, dtype, spec);
    }

    /// One layout for all: push constants and nothing else.
    VkPipelineLayout layout() const { return layout_; }
    std::uint32_t push_constant_bytes() const { return push_constant_bytes_; }
    std::size_t count() const { return count_; }
    PipelineCache& cache() { return cache_; }

  private:
    struct Entry {
        const Kernel* kernel = nullptr;
        VkPipeline pipeline = VK_NULL_HANDLE;
        DType dtype = DType::none;
        Spec spec;
    };

    VkPipeline look_up(const Kernel& kernel, DType dtype, const Spec& spec);
    std::size_t find(const Kernel& kernel, DType dtype, const Spec& spec) const;
    void grow();
    const Spirv& module_for(const Kernel& kernel, DType dtype) const;
    void check_limits(const Kernel& kernel, const Spirv& module, const Spec& spec) const;
    VkResult create_module(const Spirv& module, VkShaderModule& shader) const;
    VkPipeline build(const Kernel& kernel, DType dtype, const Spec& spec);
    std::uint32_t asked_subgroup(const Spirv& module) const;
    VkPipelineShaderStageCreateFlags stage_flags(const Spirv& module, const Spec& spec) const;

    LogicalDevice& device_;
    PipelineCache cache_;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    std::uint32_t push_constant_bytes_ = 0;
    std::vector<Entry> entries_;  // open addressing, a power of two, at most half full
    std::size_t last_ = 0, count_ = 0;
};

}  // namespace vkml::vulkan

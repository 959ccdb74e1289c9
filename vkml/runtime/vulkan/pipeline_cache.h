#pragma once
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>

#include "vkml/runtime/vulkan/logical_device.h"

namespace vkml::vulkan {

/// The driver's pipeline cache and its file, one per device and driver version.
class PipelineCache {
  public:
    explicit PipelineCache(LogicalDevice& device);
    ~PipelineCache();
    PipelineCache(const PipelineCache&) = delete;

    VkPipelineCache handle() const { return handle_; }
    /// A pipeline was built: the file is out of date.
    void mark_changed() { changed_++; }
    /// Writes the file if pipelines were built since and the last write is a while ago.
    void save_sometimes();
    /// Writes the file if pipelines were built since, together with what other processes wrote meanwhile.
    void save() noexcept;

  private:
    VkPipelineCache create(std::span<const std::byte> data) const;
    bool ours(std::span<const std::byte> data) const;

    LogicalDevice& device_;
    std::filesystem::path path_;  // empty: no file
    VkPipelineCache handle_ = VK_NULL_HANDLE;
    int changed_ = 0;
    std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace vkml::vulkan

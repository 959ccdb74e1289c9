#include "vkml/runtime/vulkan/pipeline_cache.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "vkml/runtime/vulkan/cache_file.h"
#include "vkml/runtime/vulkan/environment.h"

namespace vkml::vulkan {

namespace {

std::string file_name(const PhysicalDevice& p) {
    std::string name;
    for (std::uint8_t byte : p.vulkan11.deviceUUID) name += fmt::format("{:02x}", byte);
    return fmt::format("{}-{:08x}.bin", name, p.properties.driverVersion);
}

}  // namespace

PipelineCache::PipelineCache(LogicalDevice& device) : device_(device) {
    std::vector<std::byte> data;
    if (const std::string& folder = environment().cache_folder; !folder.empty()) {
        path_ = std::filesystem::path(folder) / file_name(device.physical);
        data = read_cache_file(path_);
        if (!ours(data)) data.clear();
    }
    handle_ = create(data);
    if (handle_ == VK_NULL_HANDLE) handle_ = create({});
}

PipelineCache::~PipelineCache() {
    save();
    device_.api.vkDestroyPipelineCache(device_.handle, handle_, nullptr);
}

// The header every driver writes: another driver's data is not for this one.
bool PipelineCache::ours(std::span<const std::byte> data) const {
    VkPipelineCacheHeaderVersionOne header;
    if (data.size() < sizeof header) return false;
    std::memcpy(&header, data.data(), sizeof header);
    const auto& p = device_.physical.properties;
    return header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE && header.vendorID == p.vendorID &&
           header.deviceID == p.deviceID &&
           std::memcmp(header.pipelineCacheUUID, p.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

VkPipelineCache PipelineCache::create(std::span<const std::byte> data) const {
    const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                         .pNext = nullptr,
                                         .flags = 0,
                                         .initialDataSize = data.size(),
                                         .pInitialData = data.data()};
    VkPipelineCache cache = VK_NULL_HANDLE;
    if (device_.api.vkCreatePipelineCache(device_.handle, &info, nullptr, &cache) != VK_SUCCESS) return VK_NULL_HANDLE;
    return cache;
}

void PipelineCache::save_sometimes() {
    using namespace std::chrono_literals;
    if (changed_ == 0 || std::chrono::steady_clock::now() - written_ < 5s) [[likely]]
        return;
    save();
}

void PipelineCache::save() noexcept try {
    if (path_.empty() || changed_ == 0 || handle_ == VK_NULL_HANDLE) return;
    changed_ = 0;
    written_ = std::chrono::steady_clock::now();
    if (auto others = read_cache_file(path_); ours(others))
        if (VkPipelineCache other = create(others)) {
            device_.api.vkMergePipelineCaches(device_.handle, handle_, 1, &other);
            device_.api.vkDestroyPipelineCache(device_.handle, other, nullptr);
        }
    std::size_t size = 0;
    if (device_.api.vkGetPipelineCacheData(device_.handle, handle_, &size, nullptr) != VK_SUCCESS) return;
    std::vector<std::byte> data(size);
    if (device_.api.vkGetPipelineCacheData(device_.handle, handle_, &size, data.data()) != VK_SUCCESS) return;
    data.resize(size);
    write_cache_file(path_, data);
} catch (...) {
    // A cache that cannot be written costs time, not answers.
}

}  // namespace vkml::vulkan

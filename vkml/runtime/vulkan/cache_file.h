#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

/// The pipeline cache as a file that can be trusted: drivers have crashed on damaged data.
namespace vkml::vulkan {

/// The payload, or nothing when the file is absent, damaged or of another format. Never throws.
std::vector<std::byte> read_cache_file(const std::filesystem::path& path) noexcept;

/// Writes beside the file and renames, so that readers see the old or the new content. False when it cannot be done.
bool write_cache_file(const std::filesystem::path& path, std::span<const std::byte> payload) noexcept;

}  // namespace vkml::vulkan

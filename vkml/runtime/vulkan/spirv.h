#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "vkml/runtime/kernel.h"

/// The little that must be read out of a module, or changed in it, before a driver sees it.
namespace vkml::vulkan {

/// The first capability that `allowed` refuses, or -1.
std::int64_t refused_capability(std::span<const std::uint32_t> code, const std::function<bool(std::uint32_t)>& allowed);

/// Invocations of a workgroup along x with these specialization constants; 0 when they cannot be told.
std::uint32_t local_size_x(std::span<const std::uint32_t> code, const Spec& spec);

/// Bytes of shared memory of a workgroup with these specialization constants, padding left out.
std::uint64_t shared_bytes(std::span<const std::uint32_t> code, const Spec& spec);

/// The module without its wish to keep subnormals, for devices without shaderDenormPreserveFloat32.
std::vector<std::uint32_t> without_denorm_preserve(std::span<const std::uint32_t> code);

}  // namespace vkml::vulkan

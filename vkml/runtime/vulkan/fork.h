#pragma once
#include <cstdint>

/// Vulkan does not survive fork(): a child must neither use nor destroy what its parent opened.
namespace vkml::vulkan {

/// Forks between the process that loaded vkML and this one. One relaxed load.
std::uint32_t fork_generation();

/// Throws DeviceError unless the process is the one that saw `generation`.
void check_same_process(std::uint32_t generation);

/// "vulkan: expected the process that opened the device, got a forked child; use the CPU, ..."
extern const char* const kForked;

}  // namespace vkml::vulkan

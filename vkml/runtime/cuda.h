#pragma once
#include <cstddef>

#include "vkml/core/device.h"
#include "vkml/core/storage.h"

/// Exchange with CUDA on the same GPU, for DLPack: memory of Vulkan's that CUDA maps as well
/// (VK_KHR_external_memory_fd). What CUDA itself allocated cannot be mapped by Vulkan, so it is copied, inside the GPU.
/// Every function but the last throws DeviceError naming what is missing: CUDA's driver, the same GPU on the other
/// side, or the extension.
namespace vkml::cuda {

/// The Vulkan device that is the GPU CUDA calls `ordinal`; the reverse.
Device vulkan_device(int ordinal);
int ordinal(Device device);

/// Memory of the Vulkan device that CUDA can map too. Throws OutOfMemoryError.
Storage allocate(Device device, std::size_t bytes);
/// Whether the memory is of that kind.
bool is_shared(const Storage& storage);
/// Where CUDA sees the first byte of such memory.
Address address(const Storage& storage);

/// A copy of `bytes` at an address of CUDA's on the GPU of `device`: after the work of CUDA's legacy default stream and
/// before all later work of the device. Waits for both.
Storage take(Device device, Address source, std::size_t bytes);
/// Waits for all of CUDA's work on the GPU, so that memory it was shown may be used for something else.
void wait(int ordinal) noexcept;

}  // namespace vkml::cuda

#include <algorithm>
#include <iterator>

#include "vkml/core/error.h"
#include "vkml/runtime/cuda.h"
#include "vkml/runtime/registry.h"
#include "vkml/runtime/vulkan/cuda_driver.h"
#include "vkml/runtime/vulkan/instance.h"

namespace vkml::cuda {

namespace {

vulkan::cuda::Uuid uuid_of(const vulkan::PhysicalDevice& d) { return std::to_array(d.vulkan11.deviceUUID); }

void check_shares(const vulkan::PhysicalDevice& d) {
    check<DeviceError>(d.usable(), "vulkan: ", d.properties.deviceName, ": ", d.missing);
    check<DeviceError>(d.shares_memory,
                       "vulkan: expected a device that exports memory (VK_KHR_external_memory_fd), got ",
                       d.properties.deviceName);
}

}  // namespace

Device vulkan_device(int ordinal) {
    const vulkan::cuda::Uuid uuid = vulkan::cuda::uuid_of(ordinal);
    const auto& devices = vulkan::instance().devices;
    const auto same = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return uuid_of(d) == uuid; });
    check<DeviceError>(same != devices.end(), "vulkan: expected CUDA's device ", ordinal, " among the ", devices.size(),
                       " of Vulkan, got none with its UUID");
    check_shares(*same);
    return {DeviceType::vulkan, static_cast<std::int16_t>(std::distance(devices.begin(), same))};
}

int ordinal(Device device) {
    check<DeviceError>(!device.is_cpu(), "CUDA: expected a Vulkan device, got ", device);
    stream(device);  // raises if there is none
    const vulkan::PhysicalDevice& d = vulkan::instance().devices[static_cast<std::size_t>(device.index)];
    const int found = vulkan::cuda::ordinal_of(uuid_of(d));
    check_shares(d);
    return found;
}

Storage allocate(Device device, std::size_t bytes) { return stream(device).allocate_shared(bytes); }

bool is_shared(const Storage& storage) { return stream(storage->device).is_shared(storage); }

Address address(const Storage& storage) {
    return stream(storage->device).backend().cuda_address(storage->address, storage->bytes);
}

Storage take(Device device, Address source, std::size_t bytes) {
    Stream& on = stream(device);
    Storage target = on.allocate_shared(bytes);
    const Address seen = address(target);
    on.wait(on.submit());  // the block may be a freed one that earlier work still touches
    vulkan::cuda::copy(ordinal(device), seen, source, bytes);
    return target;
}

void wait(int ordinal) noexcept { vulkan::cuda::synchronize(ordinal); }

}  // namespace vkml::cuda

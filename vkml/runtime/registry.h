#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "vkml/core/tensor.h"
#include "vkml/runtime/backend.h"
#include "vkml/runtime/stream.h"

/// Which devices there are, and the stream of each.
namespace vkml {

/// All devices, best first: real GPUs, then the CPU, then CPU-type Vulkan devices, then what cannot be used, with the
/// reason.
std::vector<DeviceRecord> devices();
/// True when a Vulkan device can be opened.
bool has_vulkan();

/// The stream of a device, opened at its first use and kept to the end of the process. Throws DeviceError if there is
/// none.
Stream& stream(Device device);
inline Stream& stream_of(const Tensor& t) { return stream(t.device()); }

/// Where tensors are made when nobody says: VKML_DEVICE, else the CPU. A scope's device wins over the process's.
Device default_device();
void set_default_device(Device device);

/// Makes `device` the default of this thread while it lives.
class DeviceScope {
  public:
    explicit DeviceScope(Device device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

  private:
    Device previous_;
    bool had_previous_;
};

/// The one device the defined tensors among these share. Throws DeviceError naming `op` and both devices.
Device common_device(std::string_view op, std::initializer_list<const Tensor*> tensors);

/// Waits for the device; without one, for every open device.
void synchronize();

/// True: every operator on every device waits for its result. For debugging.
void set_eager(bool eager);
bool is_eager();

/// An uninitialised packed tensor. Throws ShapeError for a negative extent, OutOfMemoryError, DeviceError.
Tensor empty(const Shape& shape, DType dtype, Device device);
inline Tensor empty_like(const Tensor& t) { return empty(t.shape(), t.dtype(), t.device()); }

}  // namespace vkml

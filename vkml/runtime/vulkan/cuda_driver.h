#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

/// The little of CUDA's driver API that an exchange of memory needs, found at run time: building needs no CUDA. Every
/// function throws DeviceError naming what is missing: the library, one of its functions, or the call that failed.
namespace vkml::vulkan::cuda {

/// A GPU's identity, the same in CUDA and in Vulkan.
using Uuid = std::array<std::uint8_t, 16>;

/// Of CUDA's device with that number.
Uuid uuid_of(int ordinal);
/// CUDA's number of the GPU.
int ordinal_of(const Uuid& uuid);

/// An allocation of Vulkan's in the GPU's primary context.
class Mapping {
  public:
    /// `descriptor` is the allocation's OPAQUE_FD handle; it is used up, also on a failure.
    Mapping(int ordinal, int descriptor, std::uint64_t bytes, bool dedicated);
    ~Mapping();
    Mapping(const Mapping&) = delete;

    std::uint64_t base() const { return base_; }

  private:
    int ordinal_;
    void* memory_ = nullptr;
    std::uint64_t base_ = 0;
};

/// Copies inside the GPU after what its legacy default stream holds, and waits for the copy.
void copy(int ordinal, std::uint64_t target, std::uint64_t source, std::size_t bytes);
/// Waits for all work of the GPU's primary context; a failure is nobody's.
void synchronize(int ordinal) noexcept;

}  // namespace vkml::vulkan::cuda

#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "vkml/runtime/vulkan/cuda_driver.h"
#include "vkml/runtime/vulkan/logical_device.h"

namespace vkml::vulkan {

/// Memory taken from the device: one VkBuffer each, found again by address.
class MemoryTable {
  public:
    explicit MemoryTable(LogicalDevice& device);
    ~MemoryTable();
    MemoryTable(const MemoryTable&) = delete;

    /// Address aligned to 256 bytes. Throws OutOfMemoryError naming bytes, limit and the limit's name.
    Memory allocate(std::size_t bytes, MemoryKind kind);
    /// Takes the memory out of the table; it is freed by the first collect() with a timepoint at or past `after`.
    void retire(const Memory& memory, Timepoint after) noexcept;
    /// Frees what was retired and is no longer used. True if anything is still waiting.
    bool collect(Timepoint reached) noexcept;

    struct Place {
        VkBuffer buffer;
        VkDeviceSize offset;
    };
    /// Throws Error when the range is not inside one allocation.
    Place find(Address address, std::size_t bytes) const;
    /// Where CUDA sees the range, which is of the kind `shared`; mapped at the first question, until it is freed.
    Address cuda_address(Address address, std::size_t bytes);

  private:
    struct Allocation {
        VkBuffer buffer = VK_NULL_HANDLE;
        std::vector<VkDeviceMemory> memory;  // several behind a sparse buffer
        bool sparse = false;                 // decided once, in create()
        VkDeviceSize size = 0;               // of the buffer
        VkDeviceSize charged = 0;            // taken from the heap
        std::uint32_t heap = 0;
        Address base = 0;
        std::size_t bytes = 0;  // from the aligned address on
        std::byte* host = nullptr;
        Timepoint after = 0;
        MemoryKind kind = MemoryKind::device;
        std::unique_ptr<cuda::Mapping> cuda;
    };

    /// The address and the allocation that holds the range.
    const std::pair<const Address, Allocation>& holder(Address address, std::size_t bytes) const;
    void check_limits(VkDeviceSize size, bool sparse) const;
    Allocation create(VkDeviceSize size, MemoryKind kind);
    void back(Allocation& a);
    bool back_with(Allocation& a, std::uint32_t type, const VkMemoryRequirements& needs);
    bool take(Allocation& a, std::uint32_t type, VkDeviceSize size);
    std::unique_ptr<cuda::Mapping> map_in_cuda(const Allocation& a) const;
    void give(Allocation& a) noexcept;
    void bind_sparse(const Allocation& a, VkDeviceSize size, VkDeviceSize piece);
    void destroy(Allocation& a) noexcept;
    std::vector<std::uint32_t> candidates(std::uint32_t allowed, MemoryKind kind) const;
    [[noreturn]] void fail_heap(std::uint32_t heap, VkDeviceSize size) const;

    LogicalDevice& device_;
    VkDeviceSize padding_ = 0;  // for devices whose addresses are less aligned than ours
    std::uint32_t count_ = 0;   // of VkDeviceMemory
    VkDeviceSize used_[VK_MAX_MEMORY_HEAPS] = {};
    mutable std::mutex lock_;
    std::map<Address, Allocation> live_;
    std::vector<Allocation> retired_;
};

}  // namespace vkml::vulkan

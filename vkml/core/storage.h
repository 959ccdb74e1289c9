#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "vkml/core/device.h"
#include "vkml/core/intrusive.h"

/// A span of device memory shared by the tensors that view it.
namespace vkml {

/// A device address as a kernel sees it; on the CPU, the pointer.
using Address = std::uint64_t;

struct Block;

/// Whoever handed out a block takes it back here, from any thread.
class BlockOwner {
  public:
    virtual ~BlockOwner() = default;
    virtual void take_back(Block* block) noexcept = 0;
};

/// One allocation. It outlives the tensors: a pool keeps it for reuse, and its epochs with it, which is what makes
/// reuse of freed memory safe without waiting.
struct Block : RefCounted<Block> {
    Address address = 0;  // 256-byte aligned
    std::size_t bytes = 0;
    void* host = nullptr;  // where the host can read it directly, if anywhere
    Device device;
    BlockOwner* owner = nullptr;

    /// Stream epochs of the last access, kept by runtime/stream.h.
    std::uint64_t last_read = 0, last_write = 0;
    /// Raised by every in-place write, so that autograd notices a saved value that changed.
    std::atomic<std::uint32_t> version{0};

    void release_last() noexcept { owner->take_back(this); }
};

using Storage = Ref<Block>;

/// Host memory that something else owns (a NumPy array, a DLPack capsule); `release(context)` runs when the last tensor
/// goes.
Storage borrow_host(void* data, std::size_t bytes, void* context, void (*release)(void*));

}  // namespace vkml

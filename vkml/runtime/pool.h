#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkml/core/fork_mutex.h"
#include "vkml/core/storage.h"
#include "vkml/runtime/backend.h"

namespace vkml {

/// What memory_stats() shows; bytes and counts.
struct MemoryStats {
    std::uint64_t in_use_bytes = 0, peak_in_use_bytes = 0, reserved_bytes = 0;
    std::uint64_t live_allocations = 0, total_allocations = 0, device_allocations = 0, block_count = 0;
    /// The sums; of two peaks that is a bound.
    MemoryStats& operator+=(const MemoryStats& more);
    /// Share of the reserved bytes that no tensor uses.
    double fragmentation() const {
        return reserved_bytes ? 1.0 - static_cast<double>(in_use_bytes) / static_cast<double>(reserved_bytes) : 0.0;
    }
};

/// One piece of device memory, cut into blocks.
struct PoolSlab {
    struct Part {
        std::uint64_t offset, bytes;
        bool in_use;
    };
    std::uint64_t address, bytes, in_use_bytes;
    std::vector<Part> parts;  // by offset
};

/// Cuts device memory into blocks by size class and keeps freed blocks for the next request of their class, so a
/// repeated step reaches a state without new device allocations. A block is reusable as soon as it is freed: the stream
/// is in order, and the epochs on the block bring the barrier. On a device that runs behind the host, small blocks rest
/// until a few more of their class are freed: a launch need not wait for the last one because of the memory it writes.
/// Any thread may allocate and free.
class Pool final : public BlockOwner {
  public:
    static constexpr std::size_t kFirstSlab = std::size_t{64} << 20;

    /// Small blocks are cut from slabs of device memory, the first of `first_slab` bytes, each next one twice as large.
    Pool(Backend& backend, MemoryKind kind, std::size_t first_slab = kFirstSlab)
        : backend_(backend),
          kind_(kind),
          rest_(kind == MemoryKind::device && !backend.synchronous()),
          first_slab_(first_slab) {}
    ~Pool() override;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// At least `bytes` bytes at a 256-byte boundary. Throws OutOfMemoryError.
    Storage allocate(std::size_t bytes);
    void take_back(Block* block) noexcept override;
    /// Returns device memory in which no block is in use. The caller has waited for the device.
    void trim();

    MemoryStats stats() const;
    /// What lies where at this moment.
    std::vector<PoolSlab> snapshot() const;
    void reset_peak();

  private:
    struct Slab {
        Memory memory;
        std::size_t used = 0;  // carved from the start
        std::size_t live = 0;  // blocks handed out
        std::vector<Block*> blocks;
        std::size_t room() const { return memory.bytes - used; }
    };
    struct PooledBlock : Block {
        Slab* slab = nullptr;
        PooledBlock* next = nullptr;  // in its free list
        int size_class = 0;
    };
    struct FreeList {
        PooledBlock *first = nullptr, *last = nullptr;
        std::size_t count = 0;
    };
    static constexpr int kClasses = 256;

    Slab* new_slab(std::size_t bytes);
    PooledBlock* carve(std::size_t bytes, int size_class);
    Slab* grown_slab(std::size_t bytes);
    PooledBlock* find_free(int size_class);
    bool rests(const PooledBlock& block) const;
    static void append(FreeList& list, PooledBlock* block) noexcept;

    Backend& backend_;
    MemoryKind kind_;
    bool rest_;
    std::size_t first_slab_;
    mutable ForkMutex mutex_;
    std::array<FreeList, kClasses> free_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    Slab* open_ = nullptr;  // the newest of those that small blocks are cut from
    std::size_t next_slab_ = 0;
    MemoryStats stats_;
};

}  // namespace vkml

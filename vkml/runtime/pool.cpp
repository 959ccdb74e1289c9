#include "vkml/runtime/pool.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "vkml/core/error.h"

namespace vkml {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kLargestSlab = std::size_t{512} << 20;
// From here on a block has device memory of its own, so that it can be given back alone.
constexpr std::size_t kOwnMemory = std::size_t{32} << 20;
// Freed blocks of a class that rest: this many, or less where they are this many bytes together. Larger blocks do not.
constexpr std::size_t kResting = 7, kRestingBytes = std::size_t{16} << 20, kLargestResting = kRestingBytes / 4;

/// Eight classes per power of two: at most an eighth of a block is padding.
int size_class_of(std::size_t bytes) {
    const std::size_t units = (bytes - 1) / kAlignment;
    if (units < 16) return static_cast<int>(units);
    const int power = std::bit_width(units) - 1;  // >= 4
    const std::size_t step = (units >> (power - 3)) & 7;
    return 16 + (power - 4) * 8 + static_cast<int>(step);
}

std::size_t class_bytes(int size_class) {
    if (size_class < 16) return (static_cast<std::size_t>(size_class) + 1) * kAlignment;
    const int power = 4 + (size_class - 16) / 8;
    const std::size_t step = static_cast<std::size_t>((size_class - 16) % 8);
    return (((8 + step + 1) << (power - 3))) * kAlignment;
}

}  // namespace

MemoryStats& MemoryStats::operator+=(const MemoryStats& more) {
    in_use_bytes += more.in_use_bytes;
    peak_in_use_bytes += more.peak_in_use_bytes;
    reserved_bytes += more.reserved_bytes;
    live_allocations += more.live_allocations;
    total_allocations += more.total_allocations;
    device_allocations += more.device_allocations;
    block_count += more.block_count;
    return *this;
}

Pool::~Pool() {
    for (auto& slab : slabs_) {
        for (Block* block : slab->blocks) delete static_cast<PooledBlock*>(block);
        backend_.release(slab->memory);
    }
}

Storage Pool::allocate(std::size_t bytes) {
    // The last of the free lists ends here.
    static_assert(16 + (42 - 8 - 4) * 8 == kClasses);
    check<OutOfMemoryError>(bytes <= std::size_t{1} << 42,
                            "allocation: expected at most 2^42 bytes (the pool's largest block), got ", bytes);
    const int size_class = size_class_of(std::max<std::size_t>(bytes, 1));
    std::lock_guard lock(mutex_);
    PooledBlock* block = find_free(size_class);
    if (!block) block = carve(class_bytes(size_class), size_class);
    block->slab->live++;
    stats_.live_allocations++;
    stats_.total_allocations++;
    stats_.in_use_bytes += block->bytes;
    stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
    return Storage(block);
}

void Pool::take_back(Block* block) noexcept {
    auto* pooled = static_cast<PooledBlock*>(block);
    std::lock_guard lock(mutex_);
    pooled->slab->live--;
    stats_.live_allocations--;
    stats_.in_use_bytes -= pooled->bytes;
    FreeList& list = free_[static_cast<std::size_t>(pooled->size_class)];
    if (rests(*pooled)) return append(list, pooled);
    pooled->next = list.first;  // the warmest in the caches first
    list.first = pooled;
    list.count++;
}

void Pool::append(FreeList& list, PooledBlock* block) noexcept {
    block->next = nullptr;
    (list.first ? list.last->next : list.first) = block;
    list.last = block;
    list.count++;
}

bool Pool::rests(const PooledBlock& block) const { return rest_ && block.bytes <= kLargestResting; }

/// Null also where the block freed first should rest and there is room for another.
Pool::PooledBlock* Pool::find_free(int size_class) {
    FreeList& list = free_[static_cast<std::size_t>(size_class)];
    PooledBlock* block = list.first;
    if (!block) return nullptr;
    if (rests(*block) && list.count <= std::min(kResting, kRestingBytes / block->bytes) && open_ &&
        open_->room() >= block->bytes)
        return nullptr;
    list.first = block->next;
    list.count--;
    return block;
}

Pool::PooledBlock* Pool::carve(std::size_t bytes, int size_class) {
    Slab* slab = nullptr;
    if (bytes >= kOwnMemory) {
        slab = new_slab(bytes);
    } else {
        for (auto& candidate : slabs_)
            if (candidate->room() >= bytes) slab = candidate.get();
        if (!slab) slab = grown_slab(bytes);
        open_ = slab;
    }
    auto block = std::make_unique<PooledBlock>();
    block->address = slab->memory.address + slab->used;
    block->bytes = bytes;
    block->host = slab->memory.host ? static_cast<std::byte*>(slab->memory.host) + slab->used : nullptr;
    block->device = backend_.device();
    block->owner = this;
    block->slab = slab;
    block->size_class = size_class;
    slab->blocks.push_back(block.get());
    slab->used += bytes;
    stats_.block_count++;
    return block.release();
}

/// Twice as large as the one before, or as small as will do where there is no memory for that.
Pool::Slab* Pool::grown_slab(std::size_t bytes) {
    const std::size_t least = std::max(bytes, first_slab_);
    for (std::size_t wanted = std::max(bytes, std::clamp(next_slab_ * 2, first_slab_, kLargestSlab));;) {
        try {
            Slab* slab = new_slab(wanted);
            next_slab_ = wanted;
            return slab;
        } catch (const OutOfMemoryError&) {
            if (wanted == bytes) throw;
            wanted = wanted > least ? std::max(wanted / 2, least) : bytes;
        }
    }
}

Pool::Slab* Pool::new_slab(std::size_t bytes) {
    auto slab = std::make_unique<Slab>();
    slab->memory = backend_.allocate(bytes, kind_);
    stats_.reserved_bytes += slab->memory.bytes;
    stats_.device_allocations++;
    slabs_.push_back(std::move(slab));
    return slabs_.back().get();
}

void Pool::trim() {
    std::lock_guard lock(mutex_);
    for (FreeList& list : free_) {
        const FreeList before = std::exchange(list, FreeList{});
        for (PooledBlock *block = before.first, *next; block; block = next) {
            next = block->next;
            if (block->slab->live > 0) append(list, block);
        }
    }
    open_ = nullptr;
    next_slab_ = 0;
    std::erase_if(slabs_, [this](const std::unique_ptr<Slab>& slab) {
        if (slab->live > 0) return false;
        for (Block* block : slab->blocks) delete static_cast<PooledBlock*>(block);
        stats_.block_count -= slab->blocks.size();
        stats_.reserved_bytes -= slab->memory.bytes;
        backend_.release(slab->memory);
        return true;
    });
}

MemoryStats Pool::stats() const {
    std::lock_guard lock(mutex_);
    return stats_;
}

std::vector<PoolSlab> Pool::snapshot() const {
    std::lock_guard lock(mutex_);
    std::unordered_set<const Block*> unused;
    for (const FreeList& list : free_)
        for (const PooledBlock* block = list.first; block; block = block->next) unused.insert(block);
    std::vector<PoolSlab> out;
    for (const auto& slab : slabs_) {
        PoolSlab& seen = out.emplace_back(PoolSlab{slab->memory.address, slab->memory.bytes, 0, {}});
        for (const Block* block : slab->blocks) {
            const bool in_use = !unused.contains(block);
            seen.parts.push_back({block->address - slab->memory.address, block->bytes, in_use});
            if (in_use) seen.in_use_bytes += block->bytes;
        }
    }
    return out;
}

void Pool::reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak_in_use_bytes = stats_.in_use_bytes;
}

}  // namespace vkml

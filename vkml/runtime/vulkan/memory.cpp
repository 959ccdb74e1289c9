#include "vkml/runtime/vulkan/memory.h"

#include <algorithm>

#include "vkml/core/error.h"
#include "vkml/runtime/vulkan/commands.h"

namespace vkml::vulkan {

namespace {

constexpr VkDeviceSize kAlignment = 256;
constexpr VkMemoryPropertyFlags kMapped =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkDeviceSize kSparseChunk = VkDeviceSize{1} << 30;
constexpr VkDeviceSize kMostRounding = VkDeviceSize{64} << 10;  // to which a driver may round a buffer's memory

VkDeviceSize align_up(VkDeviceSize value, VkDeviceSize alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

[[noreturn]] void fail_limit(VkDeviceSize limit, std::string_view name, VkDeviceSize got) {
    fail<OutOfMemoryError>("allocation: expected at most ", limit, " bytes (", name, "), got ", got);
}

}  // namespace

MemoryTable::MemoryTable(LogicalDevice& device) : device_(device) {}

MemoryTable::~MemoryTable() {
    const auto end = [this](Allocation& a) {
        static_cast<void>(a.cuda.release());  // CUDA may have ended before us
        destroy(a);
    };
    for (Allocation& a : retired_) end(a);
    for (auto& [address, a] : live_) end(a);
}

Memory MemoryTable::allocate(std::size_t bytes, MemoryKind kind) {
    if (bytes > SIZE_MAX / 2) fail_limit(device_.physical.limits.max_allocation, "maxMemoryAllocationSize", bytes);
    const VkDeviceSize size = align_up(std::max<VkDeviceSize>(bytes, 1), kAlignment);
    std::lock_guard lock(lock_);
    Allocation a = create(size + padding_, kind);
    if (a.base % kAlignment && padding_ == 0) {
        destroy(a);
        padding_ = kAlignment;
        a = create(size + padding_, kind);
    }
    const Address address = align_up(a.base, kAlignment);
    a.bytes = size;
    const Memory memory{address, size, a.host ? a.host + (address - a.base) : nullptr};
    live_.emplace(address, std::move(a));
    return memory;
}

void MemoryTable::retire(const Memory& memory, Timepoint after) noexcept {
    std::lock_guard lock(lock_);
    auto it = live_.find(memory.address);
    if (it == live_.end()) return;
    it->second.after = after;
    retired_.push_back(std::move(it->second));
    live_.erase(it);
}

bool MemoryTable::collect(Timepoint reached) noexcept {
    std::lock_guard lock(lock_);
    std::erase_if(retired_, [&](Allocation& a) {
        if (a.after > reached) return false;
        destroy(a);
        return true;
    });
    return !retired_.empty();
}

MemoryTable::Place MemoryTable::find(Address address, std::size_t bytes) const {
    std::lock_guard lock(lock_);
    const Allocation& a = holder(address, bytes).second;
    return {a.buffer, address - a.base};
}

Address MemoryTable::cuda_address(Address address, std::size_t bytes) {
    std::lock_guard lock(lock_);
    Allocation& a = live_.at(holder(address, bytes).first);
    if (!a.cuda) a.cuda = map_in_cuda(a);
    return a.cuda->base() + (address - a.base);
}

std::unique_ptr<cuda::Mapping> MemoryTable::map_in_cuda(const Allocation& a) const {
    check<Error>(a.kind == MemoryKind::shared, "CUDA: expected shared memory, got the device's own");
    const int ordinal = cuda::ordinal_of(std::to_array(device_.physical.vulkan11.deviceUUID));
    const VkMemoryGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                    .pNext = nullptr,
                                    .memory = a.memory[0],
                                    .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    int descriptor = -1;
    device_.check(device_.api.vkGetMemoryFdKHR(device_.handle, &info, &descriptor), "vkGetMemoryFdKHR");
    return std::make_unique<cuda::Mapping>(ordinal, descriptor, a.charged, device_.physical.shares_dedicated);
}

auto MemoryTable::holder(Address address, std::size_t bytes) const -> const std::pair<const Address, Allocation>& {
    auto it = live_.upper_bound(address);
    if (it != live_.begin()) {
        const auto& [start, a] = *--it;
        if (address - start <= a.bytes && bytes <= a.bytes - (address - start)) return *it;
    }
    fail<Error>("copy: expected a range inside one allocation of ", device_.physical.properties.deviceName, ", got ",
                bytes, " bytes at address ", address);
}

void MemoryTable::check_limits(VkDeviceSize size, bool sparse) const {
    const PhysicalDevice& p = device_.physical;
    if (size > p.vulkan13.maxBufferSize) fail_limit(p.vulkan13.maxBufferSize, "maxBufferSize", size);
    if (sparse && size > p.properties.limits.sparseAddressSpaceSize)
        fail_limit(p.properties.limits.sparseAddressSpaceSize, "sparseAddressSpaceSize", size);
    // max_allocation is maxMemoryAllocationSize, or less under VKML_MIN_SPEC.
    const VkDeviceSize single = std::min<VkDeviceSize>(p.vulkan11.maxMemoryAllocationSize, p.limits.max_allocation);
    if (!sparse && size > single) fail_limit(single, "maxMemoryAllocationSize", size);
    const VkDeviceSize pieces = sparse ? size / kSparseChunk + 1 : 1,
                       allowed = p.properties.limits.maxMemoryAllocationCount;
    VkDeviceSize largest = 0;
    for (std::uint32_t i = 0; i < p.memory.memoryHeapCount; i++)
        largest = std::max(largest, p.memory.memoryHeaps[i].size);
    // Before the buffer is made: a sparse one of any size is granted, and a driver may fall over it.
    if (size > largest) fail_limit(largest, "the largest of memoryHeaps", size);
    if (count_ + pieces > allowed)
        fail<OutOfMemoryError>("allocation: expected at most ", allowed,
                               " allocations (maxMemoryAllocationCount), got ", count_ + pieces, ", the last one of ",
                               size, " bytes");
}

MemoryTable::Allocation MemoryTable::create(VkDeviceSize size, MemoryKind kind) {
    const PhysicalDevice& p = device_.physical;
    check<DeviceError>(kind != MemoryKind::shared || p.shares_memory,
                       "allocation: expected a device that exports memory (VK_KHR_external_memory_fd), got ",
                       p.properties.deviceName);
    Allocation a;
    a.kind = kind;
    a.size = size;
    const VkExternalMemoryBufferCreateInfo shared{.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                  .pNext = nullptr,
                                                  .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    a.sparse =
        kind == MemoryKind::device && p.sparse() && align_up(size, kMostRounding) > p.vulkan11.maxMemoryAllocationSize;
    check_limits(size, a.sparse);
    const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                  .pNext = kind == MemoryKind::shared ? &shared : nullptr,
                                  .flags = a.sparse ? VkBufferCreateFlags{VK_BUFFER_CREATE_SPARSE_BINDING_BIT} : 0,
                                  .size = size,
                                  .usage = kBufferUsage,
                                  .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
                                  .queueFamilyIndexCount = 0,
                                  .pQueueFamilyIndices = nullptr};
    const VkResult made = device_.api.vkCreateBuffer(device_.handle, &info, nullptr, &a.buffer);
    if (made == VK_ERROR_OUT_OF_DEVICE_MEMORY || made == VK_ERROR_OUT_OF_HOST_MEMORY)
        fail_limit(p.limits.max_allocation, "vkCreateBuffer", size);
    device_.check(made, "vkCreateBuffer");
    try {
        back(a);
        const VkBufferDeviceAddressInfo address{
            .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .pNext = nullptr, .buffer = a.buffer};
        a.base = device_.api.vkGetBufferDeviceAddress(device_.handle, &address);
    } catch (...) {
        destroy(a);
        throw;
    }
    if (device_.debug())
        device_.name_object(VK_OBJECT_TYPE_BUFFER, handle_bits(a.buffer),
                            concat(kind == MemoryKind::host ? "host " : "device ", size, " bytes"));
    return a;
}

std::vector<std::uint32_t> MemoryTable::candidates(std::uint32_t allowed, MemoryKind kind) const {
    constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                    cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                    mappable =
                                        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const auto& memory = device_.physical.memory;
    const bool unified = device_.physical.unified();
    std::vector<std::pair<int, std::uint32_t>> ranked;
    for (std::uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        // Protected, lazily allocated and vendors' uncached types need features of their own.
        if (!(allowed >> i & 1) || (flags & ~(local | mappable | cached))) continue;
        const bool is_local = flags & local, is_mappable = (flags & mappable) == mappable, is_cached = flags & cached;
        if (kind == MemoryKind::host ? !is_mappable : !is_local && !unified) continue;
        const int score = kind == MemoryKind::host ? 2 * is_cached + !is_local
                          : unified                ? 4 * is_local + 2 * (is_mappable && is_cached)
                                                   : !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
        ranked.emplace_back(-score, i);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](auto& a, auto& b) { return a.first < b.first; });
    std::vector<std::uint32_t> types;
    for (auto& [score, type] : ranked) types.push_back(type);
    return types;
}

void MemoryTable::back(Allocation& a) {
    VkMemoryRequirements needs;
    device_.api.vkGetBufferMemoryRequirements(device_.handle, a.buffer, &needs);
    const auto types = candidates(needs.memoryTypeBits, a.kind);
    const auto& memory = device_.physical.memory;
    check<DeviceError>(!types.empty(), "allocation: expected a memory type for ",
                       a.kind == MemoryKind::host ? "host" : "device", " memory, got none on ",
                       device_.physical.properties.deviceName);
    const bool backed =
        std::any_of(types.begin(), types.end(), [&](std::uint32_t t) { return back_with(a, t, needs); });
    if (!backed) fail_heap(memory.memoryTypes[types.front()].heapIndex, needs.size);
}

bool MemoryTable::back_with(Allocation& a, std::uint32_t type, const VkMemoryRequirements& needs) {
    const PhysicalDevice& p = device_.physical;
    const std::uint32_t heap = p.memory.memoryTypes[type].heapIndex;
    const VkDeviceSize capacity = p.memory.memoryHeaps[heap].size;
    if (needs.size > capacity || used_[heap] > capacity - needs.size) return false;
    a.heap = heap;
    const VkDeviceSize most = p.vulkan11.maxMemoryAllocationSize;
    const VkDeviceSize piece = a.sparse ? std::min(kSparseChunk, most) / needs.alignment * needs.alignment : needs.size;
    for (VkDeviceSize at = 0; at < needs.size; at += piece)
        if (!take(a, type, std::min(piece, needs.size - at))) {
            give(a);
            return false;
        }
    if (a.sparse) {
        bind_sparse(a, needs.size, piece);
        return true;
    }
    device_.check(device_.api.vkBindBufferMemory(device_.handle, a.buffer, a.memory[0], 0), "vkBindBufferMemory");
    const VkMemoryPropertyFlags flags = p.memory.memoryTypes[type].propertyFlags;
    // Device memory is shown to the host only where reading it is as cheap as reading any other.
    if (a.kind == MemoryKind::host || (p.unified() && (flags & kMapped) == kMapped)) {
        void* host = nullptr;
        device_.check(device_.api.vkMapMemory(device_.handle, a.memory[0], 0, VK_WHOLE_SIZE, 0, &host), "vkMapMemory");
        a.host = static_cast<std::byte*>(host);
    }
    return true;
}

bool MemoryTable::take(Allocation& a, std::uint32_t type, VkDeviceSize size) {
    const VkMemoryDedicatedAllocateInfo dedicated{.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                                  .pNext = nullptr,
                                                  .image = VK_NULL_HANDLE,
                                                  .buffer = a.buffer};
    const VkExportMemoryAllocateInfo shared{.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                            .pNext = device_.physical.shares_dedicated ? &dedicated : nullptr,
                                            .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .pNext = a.kind == MemoryKind::shared ? &shared : nullptr,
                                          .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
                                          .deviceMask = 0};
    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .pNext = &flags,
                                    .allocationSize = size,
                                    .memoryTypeIndex = type};
    VkDeviceMemory memory;
    const VkResult result = device_.api.vkAllocateMemory(device_.handle, &info, nullptr, &memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY ||
        result == VK_ERROR_TOO_MANY_OBJECTS)
        return false;
    device_.check(result, "vkAllocateMemory");
    a.memory.push_back(memory);
    a.charged += size;
    used_[a.heap] += size;
    count_++;
    return true;
}

void MemoryTable::give(Allocation& a) noexcept {
    for (VkDeviceMemory memory : a.memory) device_.api.vkFreeMemory(device_.handle, memory, nullptr);
    count_ -= static_cast<std::uint32_t>(a.memory.size());
    used_[a.heap] -= a.charged;
    a.memory.clear();
    a.charged = 0;
}

void MemoryTable::destroy(Allocation& a) noexcept {
    a.cuda.reset();
    device_.api.vkDestroyBuffer(device_.handle, a.buffer, nullptr);
    give(a);
}

void MemoryTable::bind_sparse(const Allocation& a, VkDeviceSize size, VkDeviceSize piece) {
    std::vector<VkSparseMemoryBind> binds;
    for (VkDeviceMemory memory : a.memory) {
        const VkDeviceSize at = binds.size() * piece;
        binds.push_back({.resourceOffset = at,
                         .size = std::min(piece, size - at),
                         .memory = memory,
                         .memoryOffset = 0,
                         .flags = 0});
    }
    const VkSparseBufferMemoryBindInfo buffer{
        .buffer = a.buffer, .bindCount = static_cast<std::uint32_t>(binds.size()), .pBinds = binds.data()};
    const VkSemaphore done = create_timeline(device_);
    const std::uint64_t value = 1;
    const VkTimelineSemaphoreSubmitInfo timeline{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                 .pNext = nullptr,
                                                 .waitSemaphoreValueCount = 0,
                                                 .pWaitSemaphoreValues = nullptr,
                                                 .signalSemaphoreValueCount = 1,
                                                 .pSignalSemaphoreValues = &value};
    VkBindSparseInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO;
    info.pNext = &timeline;
    info.bufferBindCount = 1;
    info.pBufferBinds = &buffer;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &done;
    VkResult result;
    {
        std::lock_guard lock(device_.queue_lock);
        result = device_.api.vkQueueBindSparse(device_.queue, 1, &info, VK_NULL_HANDLE);
    }
    if (result == VK_SUCCESS) wait_timeline(device_, done, value);
    device_.api.vkDestroySemaphore(device_.handle, done, nullptr);
    device_.check(result, "vkQueueBindSparse");
}

void MemoryTable::fail_heap(std::uint32_t heap, VkDeviceSize size) const {
    const VkDeviceSize capacity = device_.physical.memory.memoryHeaps[heap].size;
    fail<OutOfMemoryError>("allocation: expected at most ", capacity - std::min(capacity, used_[heap]),
                           " bytes (left of memoryHeaps[", heap, "].size ", capacity, "), got ", size);
}

}  // namespace vkml::vulkan

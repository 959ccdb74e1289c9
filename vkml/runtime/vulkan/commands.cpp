#include "vkml/runtime/vulkan/commands.h"

#include <algorithm>
#include <chrono>

#include "vkml/core/error.h"

namespace vkml::vulkan {

namespace {

constexpr VkPipelineStageFlags2 kWork = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_COPY_BIT;
constexpr VkAccessFlags2 kWrites = VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags2 kReads = VK_ACCESS_2_SHADER_STORAGE_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT;

}  // namespace

VkSemaphore create_timeline(LogicalDevice& device) {
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .pNext = nullptr,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                         .initialValue = 0};
    const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type, .flags = 0};
    VkSemaphore semaphore;
    device.check(device.api.vkCreateSemaphore(device.handle, &info, nullptr, &semaphore), "vkCreateSemaphore");
    return semaphore;
}

void wait_timeline(LogicalDevice& device, VkSemaphore semaphore, std::uint64_t value) {
    const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .pNext = nullptr,
                                   .flags = 0,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &semaphore,
                                   .pValues = &value};
    device.check(device.api.vkWaitSemaphores(device.handle, &info, UINT64_MAX), "vkWaitSemaphores");
}

Commands::Commands(LogicalDevice& device) : device_(device) {
    try {
        timeline_ = create_timeline(device);
        device.name_object(VK_OBJECT_TYPE_SEMAPHORE, handle_bits(timeline_), "vkml timeline");
        for (Slot& slot : slots_) {
            const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                               .pNext = nullptr,
                                               .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                               .queueFamilyIndex = device.physical.queue_family};
            device.check(device.api.vkCreateCommandPool(device.handle, &pool, nullptr, &slot.pool),
                         "vkCreateCommandPool");
            const VkCommandBufferAllocateInfo buffer{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                     .pNext = nullptr,
                                                     .commandPool = slot.pool,
                                                     .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                     .commandBufferCount = 1};
            device.check(device.api.vkAllocateCommandBuffers(device.handle, &buffer, &slot.buffer),
                         "vkAllocateCommandBuffers");
        }
    } catch (...) {
        release();
        throw;
    }
}

Commands::~Commands() { release(); }

void Commands::release() {
    for (Slot& slot : slots_) device_.api.vkDestroyCommandPool(device_.handle, slot.pool, nullptr);
    device_.api.vkDestroySemaphore(device_.handle, timeline_, nullptr);
}

VkCommandBuffer Commands::begin() {
    const int next = (slot_ + 1) % kSlots;
    Slot& slot = slots_[next];
    wait(slot.last);
    device_.check(device_.api.vkResetCommandPool(device_.handle, slot.pool, 0), "vkResetCommandPool");
    const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                        .pNext = nullptr,
                                        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
                                        .pInheritanceInfo = nullptr};
    device_.check(device_.api.vkBeginCommandBuffer(slot.buffer, &info), "vkBeginCommandBuffer");
    slot_ = next;
    recording_ = true;
    work_ = false;
    return slot.buffer;
}

void Commands::memory_barrier(VkPipelineStageFlags2 to, VkAccessFlags2 access) {
    const VkMemoryBarrier2 memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                  .pNext = nullptr,
                                  .srcStageMask = kWork,
                                  .srcAccessMask = kWrites,
                                  .dstStageMask = to,
                                  .dstAccessMask = access};
    const VkDependencyInfo info{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                .pNext = nullptr,
                                .dependencyFlags = 0,
                                .memoryBarrierCount = 1,
                                .pMemoryBarriers = &memory,
                                .bufferMemoryBarrierCount = 0,
                                .pBufferMemoryBarriers = nullptr,
                                .imageMemoryBarrierCount = 0,
                                .pImageMemoryBarriers = nullptr};
    device_.api.vkCmdPipelineBarrier2(current(), &info);
}

void Commands::barrier() { memory_barrier(kWork, kReads | kWrites); }

Timepoint Commands::submit() {
    if (!recording_ || !work_) return submitted();
    // Waiting on a semaphore alone does not make writes visible to the host.
    memory_barrier(VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
    Slot& slot = slots_[slot_];
    recording_ = false;
    device_.check(device_.api.vkEndCommandBuffer(slot.buffer), "vkEndCommandBuffer");

    const Timepoint point = submitted() + 1;
    const VkCommandBufferSubmitInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                             .pNext = nullptr,
                                             .commandBuffer = slot.buffer,
                                             .deviceMask = 0};
    const VkSemaphoreSubmitInfo signal{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                       .pNext = nullptr,
                                       .semaphore = timeline_,
                                       .value = point,
                                       .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                       .deviceIndex = 0};
    const VkSubmitInfo2 info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                             .pNext = nullptr,
                             .flags = 0,
                             .waitSemaphoreInfoCount = 0,
                             .pWaitSemaphoreInfos = nullptr,
                             .commandBufferInfoCount = 1,
                             .pCommandBufferInfos = &commands,
                             .signalSemaphoreInfoCount = 1,
                             .pSignalSemaphoreInfos = &signal};
    {
        std::lock_guard lock(device_.queue_lock);
        device_.check(device_.api.vkQueueSubmit2(device_.queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit2");
    }
    slot.last = point;
    submitted_.store(point, std::memory_order_release);
    return point;
}

bool Commands::reached(Timepoint point) {
    if (point <= completed_.load(std::memory_order_acquire)) return true;
    std::uint64_t value = 0;
    device_.check(device_.api.vkGetSemaphoreCounterValue(device_.handle, timeline_, &value),
                  "vkGetSemaphoreCounterValue");
    // A lost device may report the end of time.
    check<DeviceError>(value <= submitted(), "vulkan: expected a timeline value of at most ", submitted(), ", got ",
                       value, " (device lost)");
    completed_.store(value, std::memory_order_release);
    return point <= value;
}

Timepoint Commands::completed() noexcept {
    std::uint64_t value = 0;
    const VkResult result = device_.api.vkGetSemaphoreCounterValue(device_.handle, timeline_, &value);
    return result == VK_SUCCESS ? std::min(value, submitted()) : submitted();
}

/// A blocked thread wakes 20 to 60 us after a GPU is done, so short work is waited for by asking.
bool Commands::reached_soon(Timepoint point) {
    using Clock = std::chrono::steady_clock;
    if (device_.physical.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) return false;  // it needs the core
    const Clock::time_point until = Clock::now() + std::chrono::microseconds(100);
    std::uint64_t value = 0;
    do {
        device_.check(device_.api.vkGetSemaphoreCounterValue(device_.handle, timeline_, &value),
                      "vkGetSemaphoreCounterValue");
    } while (value < point && Clock::now() < until);
    return value >= point && value <= submitted();
}

void Commands::wait(Timepoint point) {
    if (point <= completed_.load(std::memory_order_acquire)) return;
    check<Error>(point <= submitted(), "wait: expected a timepoint of at most ", submitted(),
                 ", the last submitted, got ", point);
    if (!reached_soon(point)) wait_timeline(device_, timeline_, point);
    // Never lowered: another thread may have seen further.
    Timepoint seen = completed_.load(std::memory_order_relaxed);
    while (seen < point && !completed_.compare_exchange_weak(seen, point, std::memory_order_release)) {
    }
}

}  // namespace vkml::vulkan

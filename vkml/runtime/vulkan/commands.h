#pragma once
#include <array>
#include <atomic>

#include "vkml/runtime/vulkan/logical_device.h"

namespace vkml::vulkan {

/// A ring of command buffers on one timeline semaphore. One thread records; any thread may wait.
class Commands {
  public:
    static constexpr int kSlots = 4;

    explicit Commands(LogicalDevice& device);
    ~Commands();
    Commands(const Commands&) = delete;

    /// Whether a command buffer is open.
    bool recording() const { return recording_; }
    VkCommandBuffer current() const { return slots_[slot_].buffer; }
    /// Position of the open command buffer in the ring.
    int slot() const { return slot_; }
    /// Opens the next command buffer of the ring, after the device has finished its previous use.
    VkCommandBuffer begin();
    /// Says that the open command buffer holds work; one without is not submitted.
    void mark_work() { work_ = true; }

    /// Everything recorded later sees the writes of everything recorded earlier, in this submission or before.
    void barrier();
    /// Submits the open command buffer; the values written are then visible to the host as well.
    Timepoint submit();

    Timepoint submitted() const { return submitted_.load(std::memory_order_acquire); }
    /// Reached when everything recorded so far has run.
    Timepoint recorded() const { return submitted() + (recording_ && work_ ? 1 : 0); }
    bool reached(Timepoint point);
    /// The last timepoint reached; on a lost device, where nothing runs any more, the last submitted.
    Timepoint completed() noexcept;
    void wait(Timepoint point);

  private:
    struct Slot {
        VkCommandPool pool = VK_NULL_HANDLE;
        VkCommandBuffer buffer = VK_NULL_HANDLE;
        Timepoint last = 0;  // of the submission it was last part of
    };

    void memory_barrier(VkPipelineStageFlags2 to, VkAccessFlags2 access);
    void release();
    bool reached_soon(Timepoint point);

    LogicalDevice& device_;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    std::array<Slot, kSlots> slots_;
    int slot_ = 0;
    bool recording_ = false, work_ = false;
    std::atomic<Timepoint> submitted_{0}, completed_{0};
};

/// A timeline semaphore at 0.
VkSemaphore create_timeline(LogicalDevice& device);
/// Blocks until the semaphore has the value.
void wait_timeline(LogicalDevice& device, VkSemaphore semaphore, std::uint64_t value);

}  // namespace vkml::vulkan

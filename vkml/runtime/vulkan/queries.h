#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "vkml/runtime/vulkan/commands.h"

namespace vkml::vulkan {

/// Time stamps around dispatches: a growing list of query pools per slot of the command ring.
class Queries {
  public:
    explicit Queries(LogicalDevice& device) : device_(device) {}
    ~Queries();
    Queries(const Queries&) = delete;

    /// Whether the queue has time stamps at all.
    bool supported() const { return device_.physical.queue.timestampValidBits > 0; }
    /// The slot's earlier use is over: its spans move to the finished ones.
    void reuse(int slot);
    void begin(int slot, VkCommandBuffer commands, std::string_view label);
    void end(int slot, VkCommandBuffer commands);
    /// Submitted as `point`.
    void submitted(int slot, Timepoint point) { slots_[slot].submission = point; }
    /// Hands out and clears the spans of every submission up to `reached`.
    std::vector<GpuSpan> take(Timepoint reached);

  private:
    static constexpr std::uint32_t kSpansPerPool = 512;
    struct Slot {
        std::vector<VkQueryPool> pools;
        std::vector<std::string_view> labels;
        Timepoint submission = 0;  // 0: not submitted yet
    };

    void read(Slot& slot);
    void write(Slot& slot, VkCommandBuffer commands, std::uint32_t query);

    LogicalDevice& device_;
    std::array<Slot, Commands::kSlots> slots_;
    std::vector<GpuSpan> finished_;
};

}  // namespace vkml::vulkan

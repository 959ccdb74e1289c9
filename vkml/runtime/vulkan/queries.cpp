#include "vkml/runtime/vulkan/queries.h"

#include <algorithm>
#include <utility>

namespace vkml::vulkan {

Queries::~Queries() {
    for (const Slot& slot : slots_)
        for (VkQueryPool pool : slot.pools) device_.api.vkDestroyQueryPool(device_.handle, pool, nullptr);
}

void Queries::reuse(int slot) {
    if (!slots_[slot].labels.empty()) read(slots_[slot]);
    slots_[slot].submission = 0;
}

void Queries::begin(int slot, VkCommandBuffer commands, std::string_view label) {
    Slot& s = slots_[slot];
    const auto index = static_cast<std::uint32_t>(s.labels.size());
    const std::uint32_t pool = index / kSpansPerPool;
    if (pool == s.pools.size()) {
        const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .pNext = nullptr,
                                         .flags = 0,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                         .queryCount = 2 * kSpansPerPool,
                                         .pipelineStatistics = 0};
        VkQueryPool made;
        device_.check(device_.api.vkCreateQueryPool(device_.handle, &info, nullptr, &made), "vkCreateQueryPool");
        s.pools.push_back(made);
    }
    if (index % kSpansPerPool == 0) device_.api.vkCmdResetQueryPool(commands, s.pools[pool], 0, 2 * kSpansPerPool);
    s.labels.push_back(label);
    write(s, commands, 2 * index);
}

void Queries::end(int slot, VkCommandBuffer commands) {
    Slot& s = slots_[slot];
    write(s, commands, 2 * static_cast<std::uint32_t>(s.labels.size()) - 1);
}

// After the compute work before it, at either end: spans then add up to the time that passed, also when dispatches
// overlap.
void Queries::write(Slot& slot, VkCommandBuffer commands, std::uint32_t query) {
    device_.api.vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                                     slot.pools[query / (2 * kSpansPerPool)], query % (2 * kSpansPerPool));
}

void Queries::read(Slot& slot) {
    const long double period = device_.physical.properties.limits.timestampPeriod;
    const std::uint32_t bits = device_.physical.queue.timestampValidBits;
    const std::uint64_t mask = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
    auto ns = [&](std::uint64_t ticks) { return static_cast<std::uint64_t>(static_cast<long double>(ticks) * period); };
    std::array<std::uint64_t, 2 * kSpansPerPool> ticks;
    for (std::size_t first = 0; first < slot.labels.size(); first += kSpansPerPool) {
        const std::size_t count = std::min<std::size_t>(kSpansPerPool, slot.labels.size() - first);
        device_.check(
            device_.api.vkGetQueryPoolResults(device_.handle, slot.pools[first / kSpansPerPool], 0,
                                              static_cast<std::uint32_t>(2 * count), sizeof ticks, ticks.data(),
                                              sizeof(std::uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
            "vkGetQueryPoolResults");
        for (std::size_t i = 0; i < count; i++) {
            const std::uint64_t begin = ticks[2 * i] & mask;
            const std::uint64_t length = ((ticks[2 * i + 1] & mask) - begin) & mask;  // the counter may wrap
            const std::uint64_t begin_ns = ns(begin);
            finished_.push_back({slot.labels[first + i], begin_ns, begin_ns + ns(length), slot.submission});
        }
    }
    slot.labels.clear();
}

std::vector<GpuSpan> Queries::take(Timepoint reached) {
    for (Slot& slot : slots_)
        if (!slot.labels.empty() && slot.submission && slot.submission <= reached) read(slot);
    std::sort(finished_.begin(), finished_.end(),
              [](const GpuSpan& a, const GpuSpan& b) { return a.begin_ns < b.begin_ns; });
    return std::exchange(finished_, {});
}

}  // namespace vkml::vulkan

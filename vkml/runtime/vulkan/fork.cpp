#include "vkml/runtime/vulkan/fork.h"

#include <atomic>

#include "vkml/core/error.h"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace vkml::vulkan {

const char* const kForked =
    "vulkan: expected the process that opened the device, got a forked child; use the CPU, or start processes with "
    "spawn";

namespace {

std::atomic<std::uint32_t> generation{0};

bool watch_forks() {
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
#endif
    return true;
}

// At load, not at first use: no dispatch pays for the guard of a local static.
[[maybe_unused]] const bool watching = watch_forks();

}  // namespace

std::uint32_t fork_generation() { return generation.load(std::memory_order_relaxed); }

void check_same_process(std::uint32_t seen) {
    if (fork_generation() != seen) [[unlikely]]
        fail<DeviceError>(kForked);
}

}  // namespace vkml::vulkan

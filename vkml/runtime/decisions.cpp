#include "vkml/runtime/decisions.h"

#include <atomic>
#include <deque>

#include "vkml/core/fork_mutex.h"

namespace vkml {
namespace {

struct Log {
    ForkMutex mutex;
    std::deque<Decision> kept;
    std::size_t capacity = 256;
    std::uint64_t published = 0;
};

Log& log() {
    static auto* instance = new Log;
    return *instance;
}

std::atomic<bool> g_recording{false};

}  // namespace

void record_decisions(std::size_t capacity) {
    std::lock_guard lock(log().mutex);
    log().capacity = capacity;
    log().kept.clear();
    g_recording = true;
}

void stop_recording_decisions() { g_recording = false; }

std::vector<Decision> decisions() {
    std::lock_guard lock(log().mutex);
    return {log().kept.begin(), log().kept.end()};
}

std::uint64_t decisions_published() {
    std::lock_guard lock(log().mutex);
    return log().published;
}

bool recording_decisions() { return g_recording.load(std::memory_order_relaxed); }

void publish(Decision decision) {
    std::lock_guard lock(log().mutex);
    decision.seq = log().published++;
    log().kept.push_back(std::move(decision));
    while (log().kept.size() > log().capacity) log().kept.pop_front();
}

}  // namespace vkml

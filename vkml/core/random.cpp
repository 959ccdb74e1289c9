#include "vkml/core/random.h"

#include "vkml/core/fork_mutex.h"

namespace vkml {
namespace {

ForkMutex g_mutex;
Draw g_next{0, 0, Draw::Origin::generated};

}  // namespace

void manual_seed(std::uint64_t seed) {
    std::lock_guard lock(g_mutex);
    g_next = {seed, 0, Draw::Origin::generated};
}

Draw next_draw() {
    std::lock_guard lock(g_mutex);
    const Draw draw = g_next;
    g_next.offset++;
    return draw;
}

}  // namespace vkml

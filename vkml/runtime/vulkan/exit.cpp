#include "vkml/runtime/vulkan/exit.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "vkml/runtime/vulkan/fork.h"

namespace vkml::vulkan {

namespace {

struct Open {
    std::mutex lock;
    std::vector<ClosedAtExit*> objects;
    std::uint32_t generation = fork_generation();
};

// Leaked, so that it outlives every static that may still close something.
Open& open_objects() {
    static auto* const open = new Open;
    return *open;
}

void close_all() {
    Open& open = open_objects();
    if (fork_generation() != open.generation) return;  // the parent's, locks included
    std::lock_guard lock(open.lock);
    for (ClosedAtExit* object : open.objects) object->close();
}

}  // namespace

ClosedAtExit::ClosedAtExit() {
    Open& open = open_objects();
    std::lock_guard lock(open.lock);
    open.objects.push_back(this);
}

ClosedAtExit::~ClosedAtExit() {
    Open& open = open_objects();
    if (fork_generation() != open.generation) return;
    std::lock_guard lock(open.lock);
    std::erase(open.objects, this);
}

void close_before_statics_made_so_far() { std::atexit(close_all); }

}  // namespace vkml::vulkan

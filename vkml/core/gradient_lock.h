#pragma once
#include <mutex>

namespace vkml {

/// Guards `grad` and `hooks` of every AutogradMeta, which several threads may reach. Held for a copy or a swap, never
/// while an operator runs or a hook is destroyed.
std::mutex& gradient_lock();

}  // namespace vkml

#pragma once
#include "vkml/core/fork_mutex.h"

namespace vkml {

/// Guards `grad` and `hooks` of every AutogradMeta, which several threads may reach. Held for a copy or a swap, never
/// while an operator runs or a hook is destroyed.
ForkMutex& gradient_lock();

}  // namespace vkml

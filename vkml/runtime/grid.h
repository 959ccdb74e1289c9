#pragma once
#include <cstdint>

#include "vkml/core/error.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

/// Workgroups along x before a one-dimensional grid goes on in y and then z; below every device's limit of 65535.
/// linearGroup() in slang/launch.slang undoes the fold.
inline constexpr std::uint64_t kGridFold = 32768;

/// A grid of at least `groups` workgroups in one dimension. Kernels check their index: up to 32767 groups may be
/// surplus.
inline Grid linear_grid(std::uint64_t groups) {
    if (groups <= kGridFold) return {static_cast<std::uint32_t>(groups), 1, 1};
    const std::uint64_t rows = (groups + kGridFold - 1) / kGridFold;
    const std::uint64_t planes = (rows + kGridFold - 1) / kGridFold;
    check<Error>(planes <= kGridFold, "dispatch: expected fewer than 2^45 workgroups, got ", groups);
    return {static_cast<std::uint32_t>(kGridFold), static_cast<std::uint32_t>(planes > 1 ? kGridFold : rows),
            static_cast<std::uint32_t>(planes)};
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace vkml

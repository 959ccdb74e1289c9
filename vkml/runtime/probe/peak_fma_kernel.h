#pragma once
#include <cstdint>

#include "vkml/runtime/probe/peak_fma_args.h"

namespace vkml {

/// The CPU's run: `threads` pieces of `rounds` rounds each; returns the FLOPs done.
double peak_fma_cpu(const PeakFmaArgs& args, std::int64_t threads, std::int64_t rounds);

}  // namespace vkml

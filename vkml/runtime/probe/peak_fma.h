#pragma once
#include "vkml/core/device.h"

namespace vkml {

/// The f32 FMA rate that a kernel of nothing else reaches on the device, in FLOP/s: the floor of compute-bound
/// benchmarks. Takes about a second; the best of several runs.
double peak_fma(Device device);

}  // namespace vkml

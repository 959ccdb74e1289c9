#pragma once
#include "vkml/runtime/stream.h"

namespace vkml {

/// How many times as many operations the device does in bf16 cooperative matrices with f32 sums as in f32 FMAs: both
/// from registers, the best of a few runs in turns. Measured once per device, some milliseconds, outside of a capture
/// that runs. The device has 16x16x16 matrices of bf16 and subgroups of 32. Any thread may call.
double matrix_advantage(Stream& on);

}  // namespace vkml

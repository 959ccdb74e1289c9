#pragma once
#include <filesystem>
#include <functional>

#include "vkml/runtime/stream.h"

namespace vkml {

/// How many times as many operations the device does in bf16 cooperative matrices with f32 sums as in f32 FMAs: both
/// from registers, the best of a few runs in turns. Measured once per device and driver, some 20 milliseconds, outside
/// of a capture that runs, and kept beside the pipeline cache, so that later programs decide alike. The device has
/// 16x16x16 matrices of bf16 and subgroups of 32. Any thread may call.
double matrix_advantage(Stream& on);

/// For it and its tests: the number in `file`, else what `measure` gives, which the file holds from then on. A damaged
/// file is written anew; where nothing can be written, or `file` is empty, the number is just measured.
double kept_number(const std::filesystem::path& file, const std::function<double()>& measure);

}  // namespace vkml

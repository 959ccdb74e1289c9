#pragma once
#include <optional>
#include <utility>

#include "vkml/core/int2.h"
#include "vkml/core/tensor.h"

/// Pooling over windows of (N, C, H, W). A stride of 0 means the kernel's size. Throws ShapeError for sizes that do not
/// fit.
namespace vkml {

/// The largest value of each window; outside counts as less than anything, NaN wins. Its gradient goes to the first
/// maximum, or the last NaN.
Tensor max_pool2d(const Tensor& input, Int2 kernel, Int2 stride = 0, Int2 padding = 0, Int2 dilation = 1,
                  bool ceil_mode = false);
/// The values, and where in its H x W plane each was found (int64).
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, Int2 kernel, Int2 stride = 0, Int2 padding = 0,
                                                  Int2 dilation = 1, bool ceil_mode = false);
/// The mean of each window, padding counted unless `count_include_pad` is false; `divisor_override` divides instead.
/// Floats only.
Tensor avg_pool2d(const Tensor& input, Int2 kernel, Int2 stride = 0, Int2 padding = 0, bool ceil_mode = false,
                  bool count_include_pad = true, std::optional<std::int64_t> divisor_override = {});

}  // namespace vkml

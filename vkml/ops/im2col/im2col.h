#pragma once
#include "vkml/core/int2.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// How a kernel window walks over an image.
struct Window {
    Int2 kernel, stride = 1, padding = 0, dilation = 1;

    /// Window positions along both axes of an image of this size; below 1 when the window does not fit.
    Int2 positions(Int2 image) const;
};
/// Throws ShapeError naming `op` for a kernel, stride or dilation below 1, negative padding, or a window larger than
/// the image.
void check_window(std::string_view op, const Window& window, Int2 image);

/// (N, C, H, W) to (N, C kh kw, L): rows are (channel, kernel row, kernel column), columns window positions; zeros
/// outside.
Tensor im2col(const Tensor& input, const Window& window);
/// Its transpose: (N, C kh kw, L) to (N, C, H, W), where overlaps add in ascending order of the taps.
Tensor col2im(const Tensor& cols, Int2 image, const Window& window);

}  // namespace vkml

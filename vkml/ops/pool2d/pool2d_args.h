#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Images (planes of h x w) and pooled images (planes of out_h x out_w). Forward reads `from` by strides (n, channel,
/// h, w) and writes packed; backward reads packed gradients and writes packed ones.
struct Pool2dArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(T.Storage) to;
    VKML_PTR(int64_t) indices;  // of the maxima in their planes
    int64_t strides[4];
    uint32_t planes, channels, h, w, out_h, out_w;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    int32_t padding_h, padding_w;
    uint32_t dilation_h, dilation_w;
    uint32_t divisor;  // 0: the window clipped to the padded image; 1 << 31: to the image
};

}  // namespace vkml

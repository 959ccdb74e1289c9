#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Images (planes of h x w) and pooled images (planes of out_h x out_w). Forward reads `from` by strides and writes
/// packed; backward reads packed gradients and writes packed ones. On the GPU an item is four neighbours of a line of
/// `to`; items and planes are taken apart by multiplication (runtime/divisor.h). Offsets inside a plane fit 31 bits.
struct Pool2dArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(T.Storage) to;
    VKML_PTR(int64_t) indices;  // of the maxima in their planes
    int64_t n_stride, c_stride;
    uint32_t h_stride, w_stride;
    uint32_t planes, channels, h, w, out_h, out_w;
    uint32_t kernel_h, kernel_w, stride_h, stride_w;
    int32_t padding_h, padding_w;
    uint32_t dilation_h, dilation_w;
    uint32_t divisor;  // 0: the window clipped to the padded image; 1 << 31: to the image
    uint32_t row_multiplier, line_multiplier;  // of items in a line, of lines in a plane
    uint32_t shifts;                           // of both, in halves
};

/// What the backward kernels need beside: division by the strides.
struct Pool2dBackwardArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(T.Storage) to;
    VKML_PTR(int64_t) indices;
    uint32_t stride_h_multiplier, stride_w_multiplier, stride_shifts;
    uint32_t planes, channels, h, w, out_h, out_w;
    uint32_t kernel_h, kernel_w, stride_h, stride_w;
    int32_t padding_h, padding_w;
    uint32_t dilation_h, dilation_w;
    uint32_t divisor;
    uint32_t row_multiplier, line_multiplier;
    uint32_t shifts;
};

}  // namespace vkml

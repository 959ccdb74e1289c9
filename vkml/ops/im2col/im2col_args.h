#include "vkml/runtime/slang/args.h"

namespace vkml {

/// Columns (n, channels kh kw, out_h out_w) and an image (n, channels, h, w). The one that is read has strides, the
/// other is packed.
struct Im2colArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(T.Storage) to;
    int64_t strides[4];  // of `from`: n, channel, h, w; or n, row, column
    uint64_t count;      // elements of `to`
    uint32_t channels, h, w, out_h, out_w;
    uint32_t kernel_h, kernel_w;
    uint32_t stride_h, stride_w;
    int32_t padding_h, padding_w;
    uint32_t dilation_h, dilation_w;
};

}  // namespace vkml

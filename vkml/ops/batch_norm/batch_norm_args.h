#include "vkml/runtime/slang/args.h"

namespace vkml {

/// x as (batch, channels, plane) by strides, the other two packed; everything per channel in the type computed with. An
/// item is four neighbours of a plane; planes and channels are found by multiplication (runtime/divisor.h).
struct BatchNormArgs {
    VKML_PTR(T.Storage) x;
    VKML_PTR(T.Storage) gradient;
    VKML_PTR(T.Storage) y;  // the result, or the gradient of x
    VKML_PTR(V) mean;       // relative to the channel's first element where kRelative
    VKML_PTR(V) rstd;
    VKML_PTR(V) weight;   // null: 1; of the input's dtype where kNarrow, and so is the bias
    VKML_PTR(V) bias;     // null: 0
    VKML_PTR(V) sums;     // (2, channels): of g and of g xhat
    VKML_PTR(V) partial;  // (parts, channels, 3)
    int64_t n_stride, c_stride;
    uint32_t x_stride, batch, channels, plane;
    uint32_t item_multiplier, channel_multiplier, shifts;  // of items in a plane, of channels
    uint32_t part;                                         // items of one part of a channel
};

/// Folds the parts of every channel.
struct BatchNormFoldArgs {
    VKML_PTR(T.Storage) x;
    VKML_PTR(V) partial;
    VKML_PTR(V) relative;  // the mean, relative to the channel's first element
    VKML_PTR(V) rstd;
    VKML_PTR(V) mean;
    VKML_PTR(V) variance;
    VKML_PTR(V) sums;
    int64_t c_stride;
    uint32_t channels, parts;
    float eps_high, eps_low;
};

}  // namespace vkml

#include "vkml/runtime/slang/args.h"

namespace vkml {

/// out[n][m][y][x] = sum over c and taps of weight[m][tap][c] image[n][c][y step + first + tap step][...]: a forward
/// convolution, or one residue class of the positions of its input gradient. Offsets inside a slice of the batch fit 32
/// bits. Pairs of sizes are packed as y | x << 16.
struct ConvArgs {
    VKML_PTR(T.Storage) image;
    VKML_PTR(W) weight;        // conv2d_pack's: (groups, outputs, taps, channels padded)
    VKML_PTR(T.Storage) out;
    VKML_PTR(T.Storage) bias;  // null: none
    uint32_t n_stride, c_stride, h_stride, w_stride;  // of the image; channels-last: c_stride is a group's channels
    uint32_t pixels, plane, row;                      // outputs of the slice, of one sample, of one line
    uint32_t plane_multiplier, row_multiplier, shifts;
    uint32_t h, w;
    int32_t y0, x0;  // where tap (0, 0) of output (0, 0) reads
    uint32_t in_step, taps;
    uint32_t tap_step;                       // signed halves
    uint32_t channels, outputs, groups;      // channels and outputs of one group
    uint32_t out_c, out_y, out_x;         // steps of the output
    uint32_t columns;                     // positions along x
};

/// partial[part][group][m][tap, c] = sums over a part of the pixels of gradient[n][m][pixel] image[n][c][where the tap
/// reads]. The image is described as in ConvArgs.
struct ConvWeightArgs {
    VKML_PTR(T.Storage) gradient;  // packed: (n, groups m, pixel), or channels-last (n, pixel, groups, m padded)
    VKML_PTR(T.Storage) image;
    VKML_PTR(V) partial;
    uint32_t n_stride, c_stride, h_stride, w_stride;
    uint32_t pixels, plane, row;
    uint32_t plane_multiplier, row_multiplier, shifts;
    uint32_t h, w;
    int32_t y0, x0;
    uint32_t in_step, taps;
    uint32_t tap_step;
    uint32_t channels, outputs, groups;
    uint32_t part;            // pixels of one part
    uint32_t lines, columns;  // of one matrix of partial sums, padded to tiles
    uint32_t out_c, out_y;    // steps of the gradient
};

/// Weights (by strides) to (groups, lines, columns) with columns (tap, channel), zeros where there are none.
struct ConvPackArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(W) to;
    uint64_t count;
    int64_t group_stride, m_stride, c_stride, y_stride, x_stride;
    uint32_t m, c;           // of one group
    uint32_t lines, columns;  // of one packed matrix
    uint32_t span;            // columns of one tap
    uint32_t taps_x, taps;
};

/// An image (n, groups channels, plane) to channels-last (n, plane, groups, span), zeros behind the channels.
struct ConvRepackArgs {
    VKML_PTR(T.Storage) from;
    VKML_PTR(T.Storage) to;
    uint32_t n_stride, c_stride, h_stride, w_stride;
    uint32_t plane, row, row_multiplier, row_shift;
    uint32_t channels, groups, span;
    uint32_t batch;
};

/// Partial sums to the weight's gradient (groups m, c, taps).
struct ConvReduceArgs {
    VKML_PTR(V) partial;
    VKML_PTR(T.Storage) to;
    uint64_t count;           // groups m taps span
    uint32_t parts, groups;
    uint32_t lines, columns;  // of one matrix of partial sums
    uint32_t m, c, taps, span;
};

}  // namespace vkml

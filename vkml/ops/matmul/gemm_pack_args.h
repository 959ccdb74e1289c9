#include "vkml/runtime/slang/args.h"

#define VKML_PEAK_PARTS 16  // of K, at most, for peaks of lines that lie beside each other

namespace vkml {

/// An operand of any strides to lines packed along k, padded with zeros: `to` is (batch, lines_padded, depth_padded).
/// Lines are the rows of a first operand and the columns of a second. The batch index is (outer, inner). Peaks are the
/// bits of the largest magnitude of each line.
struct GemmPackArgs {
    VKML_PTR(Raw) from;
    VKML_PTR(uint4) to;
    VKML_PTR(uint) peaks;    // (batch, lines_padded)
    VKML_PTR(uint) partial;  // (batch, parts, lines_padded): those over a part of K each
    int64_t line, k, outer, inner;
    uint32_t lines, depth, lines_padded, depth_padded, batch, batch_inner;
    uint32_t parts;
};

}  // namespace vkml

#pragma once
#include <vector>

#include "vkml/ops/conv2d/conv2d_args.h"
#include "vkml/ops/conv2d/conv2d_paths.h"
#include "vkml/runtime/kernel.h"

/// What the paths of conv2d share on the host.
namespace vkml::conv {

inline constexpr std::uint32_t kThreads = 128;  // of every kernel here
inline constexpr std::int64_t kWorkspace = std::int64_t{256} << 20;  // bytes of one

/// Samples that a launch may take, so that offsets fit 31 bits and `bytes_each` for every sample fit the workspace.
std::int64_t samples_of(const Pass& pass, std::int64_t bytes_each = 0);

/// The arguments of a launch over the samples from `n` on, without the weight.
ConvArgs pass_arguments(const Pass& pass, std::int64_t n, std::int64_t samples);

/// Four (eight) neighbouring outputs can be stored at once.
bool stores_vectors(const Pass& pass, std::int64_t width);

/// The weights of a pass as conv2d_pack lays them out: a tap has `span` columns, lines and columns are padded. `raw`
/// keeps the elements as they are.
Tensor pack_weights(const Pass& pass, std::int64_t span, std::int64_t lines, std::int64_t columns, bool raw);

/// The image of samples from `n` on as (samples, plane, groups, span), channels last.
Tensor channels_last(const Tensor& image, std::int64_t groups, std::int64_t n, std::int64_t samples);

/// Partial sums of a weight's gradient, (parts, groups, lines, columns), and which pixels make which part.
struct PartialSums {
    struct Slice {
        std::int64_t n, samples;    // of the batch
        std::int64_t first, parts;  // of the parts
        std::int64_t length;        // pixels of one part
    };
    Tensor partial;
    std::int64_t parts = 0;
    std::vector<Slice> slices;

    /// `grad` and `input` begin at the slice's samples already where `sliced`.
    ConvWeightArgs arguments(const Tensor& grad, const Tensor& input, const Sizes& sizes, const Slice& slice,
                             bool sliced = false) const;
};

/// Parts of at most `longest` pixels, in multiples of 32; more if that would leave units of the device without work,
/// fewer if the sums would not fit their workspace. `tiles` workgroups work on each. `sample_bytes`: of a sample's
/// copies, which must fit a workspace too.
PartialSums plan_partial_sums(const Tensor& grad, const Tensor& input, const Sizes& sizes, std::int64_t lines,
                              std::int64_t columns, std::int64_t tiles, std::int64_t longest,
                              std::int64_t sample_bytes = 0);

/// Adds the parts in order. The columns of a matrix are (tap, channel) with `span` channels to a tap.
void reduce_weight_gradient(const PartialSums& sums, const Tensor& out, const Sizes& sizes, std::int64_t span);

inline std::uint32_t u32(std::int64_t v) { return static_cast<std::uint32_t>(v); }
inline std::uint32_t pair(std::int64_t first, std::int64_t second) {
    return static_cast<std::uint32_t>(first & 0xffff) | static_cast<std::uint32_t>(second & 0xffff) << 16;
}
inline std::int64_t round_up(std::int64_t v, std::int64_t to) { return (v + to - 1) / to * to; }

static_assert(sizeof(ConvArgs) <= kMaxPushConstants);
static_assert(sizeof(ConvWeightArgs) <= kMaxPushConstants);

}  // namespace vkml::conv

#pragma once
#include <cstdint>

#include "vkml/ops/im2col/im2col.h"
#include "vkml/runtime/backend.h"

/// The ways to compute a convolution and its gradients, without a tape. The caller has checked everything.
namespace vkml::conv {

/// All sizes of one convolution; channels and outputs of all groups.
struct Sizes {
    std::int64_t batch, channels, outputs, groups;
    Int2 image, out;
    Window window;

    std::int64_t taps() const { return window.kernel.h * window.kernel.w; }
    std::int64_t channels_each() const { return channels / groups; }
    std::int64_t outputs_each() const { return outputs / groups; }
    /// The columns are the image itself.
    bool pointwise() const {
        return window.kernel == Int2(1) && window.stride == Int2(1) && window.padding == Int2(0);
    }
};

/// One output position after another along an axis, and where their taps read: a forward convolution, or one residue
/// class of an input gradient's positions modulo the stride, whose taps are every n-th of the kernel.
struct Axis {
    std::int64_t count;                   // positions
    std::int64_t out_first, out_step;     // where they lie in the output
    std::int64_t in_first, in_step;       // where tap 0 reads
    std::int64_t taps, tap_step;          // how many, and how far apart they read
    std::int64_t kernel_first, kernel_step;  // which elements of the kernel they are
};
Axis forward_axis(std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                  std::int64_t dilation);
Axis gradient_axis(std::int64_t image, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation, std::int64_t phase);

/// A sum over taps and channels for every output of one group after another: what the kernels of this folder compute.
/// Channels and outputs are those of one group.
struct Pass {
    Tensor image, weight, bias, out;  // image (n, groups channels, h, w), out (n, groups outputs, ...) packed
    std::int64_t groups, channels, outputs;
    std::int64_t group_stride, m_stride, c_stride;  // of the weight, in elements
    Axis y, x;
};

enum class Path : std::uint8_t { pointwise, direct, coopmat, tile, columns };
enum class Part : std::uint8_t { forward, input_gradient, weight_gradient };

// The parts of every path. Pointwise differs from columns only in that nothing is copied.
Tensor columns_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Sizes& sizes);
Tensor columns_input_gradient(const Tensor& grad, const Tensor& weight, const Sizes& sizes);
Tensor columns_weight_gradient(const Tensor& grad, const Tensor& input, const Sizes& sizes);

void run_tile(const Pass& pass);
void run_direct(const Pass& pass);
void run_coopmat(const Pass& pass);
void tile_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& sizes);
void direct_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& sizes);
void coopmat_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& out, const Sizes& sizes);

}  // namespace vkml::conv

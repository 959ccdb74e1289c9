#include <algorithm>

#include "vkml/ops/cat/cat.h"
#include "vkml/ops/conv2d/conv2d_paths.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/matmul/matmul.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/shape/shape.h"

namespace vkml::conv {
namespace {

constexpr std::int64_t kColumnBytes = std::int64_t{256} << 20;

/// (N, groups, C / groups kh kw, L)
Tensor columns(const Tensor& input, const Sizes& s) {
    const Shape shape{input.size(0), s.groups, s.channels_each() * s.taps(), s.out.h * s.out.w};
    return reshape(s.pointwise() ? input : im2col(input, s.window), shape);
}

/// (groups, C_out / groups, C / groups kh kw)
Tensor weight_matrix(const Tensor& weight, const Sizes& s) {
    return reshape(weight, {s.groups, s.outputs_each(), s.channels_each() * s.taps()});
}

/// (N, groups, C_out / groups, L)
Tensor output_matrices(const Tensor& grad, const Sizes& s) {
    return reshape(grad, {grad.size(0), s.groups, s.outputs_each(), s.out.h * s.out.w});
}

/// Samples whose columns fit the buffer; at least one.
std::int64_t samples_at_once(const Sizes& s, DType dtype) {
    if (s.pointwise()) return std::max<std::int64_t>(1, s.batch);
    const std::int64_t each =
        s.channels * s.taps() * s.out.h * s.out.w * static_cast<std::int64_t>(itemsize(dtype));
    return std::clamp<std::int64_t>(kColumnBytes / std::max<std::int64_t>(1, each), 1,
                                    std::max<std::int64_t>(1, s.batch));
}

/// Calls body(first sample, samples) for slices of the batch; once for an empty one.
template <class Body>
void for_slices(const Sizes& s, DType dtype, const Body& body) {
    const std::int64_t step = samples_at_once(s, dtype);
    for (std::int64_t n = 0; n == 0 || n < s.batch; n += step) body(n, std::min(step, s.batch - n));
}

}  // namespace

Tensor columns_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, const Sizes& s) {
    const Tensor matrix = weight_matrix(weight, s);
    std::vector<Tensor> parts;
    for_slices(s, input.dtype(), [&](std::int64_t n, std::int64_t samples) {
        const Tensor some = samples == s.batch ? input : narrow(input, 0, n, samples);
        Tensor part = reshape(matmul(matrix, columns(some, s)), {samples, s.outputs, s.out.h, s.out.w});
        if (bias.defined()) part = add(part, reshape(bias, {s.outputs, 1, 1}));
        parts.push_back(part);
    });
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

Tensor columns_input_gradient(const Tensor& grad, const Tensor& weight, const Sizes& s) {
    const Tensor matrix = transpose(weight_matrix(weight, s), -2, -1);
    std::vector<Tensor> parts;
    for_slices(s, grad.dtype(), [&](std::int64_t n, std::int64_t samples) {
        const Tensor some = samples == s.batch ? grad : narrow(grad, 0, n, samples);
        const Tensor cols = matmul(matrix, output_matrices(some, s));
        if (s.pointwise())
            parts.push_back(reshape(cols, {samples, s.channels, s.image.h, s.image.w}));
        else
            parts.push_back(
                col2im(reshape(cols, {samples, s.channels * s.taps(), s.out.h * s.out.w}), s.image, s.window));
    });
    return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

Tensor columns_weight_gradient(const Tensor& grad, const Tensor& input, const Sizes& s) {
    const Shape shape{s.outputs, s.channels_each(), s.window.kernel.h, s.window.kernel.w};
    Tensor total;
    for_slices(s, grad.dtype(), [&](std::int64_t n, std::int64_t samples) {
        const bool whole = samples == s.batch;
        const Tensor g = whole ? grad : narrow(grad, 0, n, samples), x = whole ? input : narrow(input, 0, n, samples);
        const Tensor each = matmul(output_matrices(g, s), transpose(columns(x, s), -2, -1));
        const Tensor part = reshape(sum(each, {0}), shape);
        total = total.defined() ? add(total, part) : part;
    });
    return total;
}

}  // namespace vkml::conv

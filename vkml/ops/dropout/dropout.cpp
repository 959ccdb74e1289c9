#include "vkml/ops/dropout/dropout.h"

#include <cmath>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/dropout/dropout_kernel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kRankLimit = 6;

void check_arguments(const Tensor& input, double p) {
    check<DTypeError>(is_floating(input.dtype()), "dropout: expected a floating-point tensor, got ", input.dtype());
    check(p >= 0 && p <= 1, "dropout: p: expected a number in [0, 1], got ", p);
}

Tensor launch(const Tensor& input, double p, Draw draw, std::uint64_t first) {
    Tensor out = empty_like(input);
    if (out.numel() == 0) return out;
    Tensor from = input;
    const Strides one[] = {from.strides()};
    Collapsed loop = collapse(from.shape(), one);
    // Divisions are 32-bit, and six axes fit the push constants.
    if (loop.shape.size() > kRankLimit || (loop.shape.size() > 1 && from.numel() > UINT32_MAX)) {
        from = contiguous(input.view(input.layout()));
        const Strides packed[] = {from.strides()};
        loop = collapse(from.shape(), packed);
    }
    DropoutArgs args{.input = from.address(),
                     .output = out.address(),
                     .seed = 0,
                     .offset = 0,
                     .first = first,
                     .count = static_cast<std::uint64_t>(out.numel()),
                     .strides = {},
                     .sizes = {},
                     .threshold = static_cast<std::uint32_t>(std::ceil(p * 0x1p24)),
                     .scale = static_cast<float>(1 / (1 - p))};
    for (int i = 0; i < loop.shape.size(); i++) {
        args.strides[i] = loop.strides[0][i];
        args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
    }
    const bool fours = loop.shape.size() == 1 && args.strides[0] == 1 && args.count % 4 == 0 &&
                       out.dtype() != DType::f64 && args.input % (4 * itemsize(out.dtype())) == 0;
    const Spec spec{kThreads, static_cast<std::uint32_t>(loop.shape.size()), fours ? 1u : 0u};
    stream_of(out).launch_drawn(dropout_kernel, out.dtype(), spec,
                                linear_grid(ceil_div(args.count, fours ? 4 * kThreads : kThreads)), args, draw, {from},
                                {out});
    return out;
}

}  // namespace

Tensor dropout_slice(const Tensor& input, double p, Draw draw, std::uint64_t first) {
    check_arguments(input, p);
    if (p == 0) return input;
    return record("dropout", launch(input, p, draw, first), {input}, keep_nothing,
                  [=](const Backward& b) -> Grads { return {dropout_slice(b.grad(), p, draw, first)}; });
}

Tensor dropout(const Tensor& input, double p, std::uint64_t seed, std::uint64_t offset, bool training) {
    check_arguments(input, p);
    return training ? dropout_slice(input, p, {seed, offset}, 0) : input;
}

Tensor dropout(const Tensor& input, double p) {
    check_arguments(input, p);
    return p == 0 ? input : dropout_slice(input, p, next_draw(), 0);
}

}  // namespace vkml

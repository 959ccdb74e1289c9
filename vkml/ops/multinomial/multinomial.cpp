#include "vkml/ops/multinomial/multinomial.h"

#include <bit>

#include "vkml/autograd/node.h"
#include "vkml/core/error.h"
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/multinomial/multinomial_kernel.h"
#include "vkml/ops/reduce/reduce.h"
#include "vkml/ops/scan/scan.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/sort/sort.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::int64_t kMost = std::int64_t{1} << 24;  // weights in a row

void check_arguments(const Tensor& weights, std::int64_t samples, bool replacement) {
    check<DTypeError>(is_floating(weights.dtype()), "multinomial: expected floating-point weights, got ",
                      weights.dtype());
    check(weights.ndim() == 1 || weights.ndim() == 2, "multinomial: expected rank 1 or 2, got ", weights.shape());
    const std::int64_t columns = weights.shape()[weights.ndim() - 1];
    check(columns >= 1 && columns <= kMost, "multinomial: expected 1 to ", kMost, " weights in a row, got ", columns);
    check(samples >= 1 && samples <= std::int64_t{0xffffffff},
          "multinomial: num_samples: expected a number from 1 to 4294967295, got ", samples);
    check(replacement || samples <= columns, "multinomial: num_samples: expected at most ", columns,
          " without replacement, got ", samples);
}

struct Problem {
    Tensor weights;  // f32, packed
    std::int64_t rows;
    MultinomialArgs args;
};

void launch(const Problem& p, const Kernel& kernel, MultinomialArgs args, Draw draw, UseList reads, UseList writes) {
    args.fault = stream_of(p.weights).fault_address();
    args.site = fault_site("multinomial");
    stream_of(p.weights).launch_drawn(kernel, DType::none, Spec{kThreads},
                                      linear_grid(ceil_div(args.count, std::uint64_t{kThreads})), args, draw, reads,
                                      writes);
}

/// Binary searches in the running sums of integer shares, which no order of additions changes.
Tensor with_replacement(const Problem& p, Draw draw) {
    const std::int64_t columns = p.args.columns, samples = p.args.samples;
    const Tensor largest = amax(p.weights, {1}, true);
    const Tensor shares = empty(p.weights.shape(), DType::i64, p.weights.device());
    MultinomialArgs args = p.args;
    args.samples = 1;  // weights above 0 that a row must have
    args.largest = largest.address();
    args.output = shares.address();
    args.count = static_cast<std::uint64_t>(shares.numel());
    // The sum of a row stays below 2^62.
    args.shift = 62u - 24u - static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(columns)));
    launch(p, shares_kernel, args, {}, {p.weights, largest}, {shares});
    const Tensor sums = cumsum(shares, 1), out = empty({p.rows, samples}, DType::i64, p.weights.device());
    args = p.args;
    args.sums = sums.address();
    args.output = out.address();
    args.count = static_cast<std::uint64_t>(out.numel());
    launch(p, pick_kernel, args, draw, {sums}, {out});
    return out;
}

Tensor without_replacement(const Problem& p, Draw draw) {
    const Tensor keys = empty(p.weights.shape(), DType::i64, p.weights.device());
    MultinomialArgs args = p.args;
    args.output = keys.address();
    args.count = static_cast<std::uint64_t>(keys.numel());
    launch(p, keys_kernel, args, draw, {p.weights}, {keys});
    const Sorted first = topk(keys, p.args.samples, 1, false);
    args = p.args;
    args.sums = first.values.address();
    args.count = static_cast<std::uint64_t>(p.rows);
    launch(p, check_kernel, args, {}, {first.values}, {});
    return first.indices;
}

}  // namespace

Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement, Draw draw) {
    check_arguments(weights, samples, replacement);
    const std::int64_t columns = weights.shape()[weights.ndim() - 1];
    const std::int64_t rows = weights.ndim() == 1 ? 1 : weights.shape()[0];
    Tensor out;
    if (rows == 0) {
        out = empty({0, samples}, DType::i64, weights.device());
    } else {
        Problem p{.weights = reshape(contiguous(cast(detach(weights), DType::f32)), {rows, columns}),
                  .rows = rows,
                  .args = {}};
        p.args.weights = p.weights.address();
        p.args.columns = static_cast<std::uint32_t>(columns);
        p.args.samples = static_cast<std::uint32_t>(samples);
        // One sample is the same draw either way, and cheaper this way.
        out = replacement || samples == 1 ? with_replacement(p, draw) : without_replacement(p, draw);
    }
    return weights.ndim() == 1 ? reshape(out, {samples}) : out;
}

}  // namespace vkml

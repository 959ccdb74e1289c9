#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "vkml/core/tensor.h"
#include "vkml/ops/reduce/reduce_args.h"
#include "vkml/runtime/kernel.h"

/// How reductions walk memory: rows, columns, any strides, and each of them split over workgroups with a second pass.
namespace vkml {

static_assert(sizeof(ReduceArgs) <= kMaxPushConstants);

/// What an operator says about its fold. Specialization constants are those of elements.slang.
struct Fold {
    std::string_view op;
    const Kernel& rows;
    const Kernel& columns;
    std::uint32_t operation = 0, finish = 0;
    std::size_t state_bytes = 0;  // of one partial state
    bool keeps_state = false;     // the result is the state itself, not an element
    bool ordered = false;         // positions count, so the reduced axes keep their order
    std::uint64_t divisor = 0;    // bits, in the accumulator's type
};

/// Folds the wrapped `axes` of x into y, whose elements are the kept axes in order, and into `index` where the fold has
/// positions. Publishes the decision "reduce.structure".
void reduce(const Fold& fold, const Tensor& x, const Dims& axes, const Tensor& y, const Tensor& index = {});

/// Sums in the order of `exact` mode, over the reduced elements in row-major order: the same bits on every device.
/// `fold.rows` is exact_sum; `fold.ordered` is set.
void reduce_exactly(const Fold& fold, const Tensor& x, const Dims& axes, const Tensor& y);

/// The result's shape: reduced axes dropped, or 1 with keepdim.
Shape reduced_shape(const Shape& shape, const Dims& axes, bool keepdim);
/// Elements behind each result.
std::int64_t reduced_count(const Shape& shape, const Dims& axes);

/// What a dtype's values are folded in: float for 16-bit floats, int64 for integers and bool.
constexpr DType accumulator(DType d) { return d == DType::f64 ? DType::f64 : is_floating(d) ? DType::f32 : DType::i64; }
/// Bits of `value` for Fold::divisor.
std::uint64_t accumulator_bits(DType d, double value);

}  // namespace vkml

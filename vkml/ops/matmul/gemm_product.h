#pragma once
#include <algorithm>
#include <string_view>

#include "vkml/core/tensor.h"
#include "vkml/ops/matmul/gemm.h"
#include "vkml/ops/matmul/gemm_args.h"
#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/runtime/stream.h"

/// A product between its checks and its kernels.
namespace vkml {

struct Product {
    std::string_view op;
    Tensor a, b, bias, c;
    Activation activation = Activation::none;
    GemmProblem problem;
    Shape batch;  // merged batch axes, outermost first
    Strides a_batch, b_batch;
    std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
};

/// Merges batch axes, and moves them into the rows of `a` where `b` is the same for all of them.
void fold_batch(Product& p, const Shape& shape);
/// What the kernel choice must know of the operands' memory.
void describe_layout(Product& p);
/// The arguments for the first index of the batch axes beyond the two that they hold.
GemmArgs arguments(const Product& p);

/// Calls body(args) for every index of the batch axes beyond two.
template <class Body>
void for_outer_axes(const Product& p, const Body& body) {
    const GemmArgs base = arguments(p);
    const std::int64_t item = static_cast<std::int64_t>(itemsize(p.a.dtype()));
    const int loops = std::max(0, p.batch.size() - 2);
    std::int64_t count = 1;
    for (int i = 0; i < loops; i++) count *= p.batch[i];
    for (std::int64_t index = 0; index < count; index++) {
        GemmArgs args = base;
        std::int64_t rest = index, a = 0, b = 0;
        for (int axis = loops - 1; axis >= 0; axis--) {
            a += rest % p.batch[axis] * p.a_batch[axis];
            b += rest % p.batch[axis] * p.b_batch[axis];
            rest /= p.batch[axis];
        }
        args.a += static_cast<Address>(a * item);
        args.b += static_cast<Address>(b * item);
        args.c += static_cast<Address>(index * args.batch * p.problem.m * p.problem.n * item);
        body(args);
    }
}

void launch_gemm_gpu(Stream& on, const Product& p);

/// Bytes of f32 partial sums at most.
inline constexpr std::size_t kSplitWorkspace = std::size_t{64} << 20;

}  // namespace vkml

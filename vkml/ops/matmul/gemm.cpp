#include "vkml/ops/matmul/gemm.h"

#include <algorithm>

#include "vkml/ops/matmul/gemm.spv.h"
#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/ops/matmul/gemm_coopmat.spv.h"
#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/ops/matmul/gemm_large.spv.h"
#include "vkml/ops/matmul/gemv.spv.h"
#include "vkml/ops/matmul/split_k.spv.h"
#include "vkml/ops/matmul/split_k_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr Kernel cpu_kernel{"gemm", {}, gemm_cpu};
// Indexed by Pipeline, then by whether the precision is `exact`. The pipeline names of the contract are the labels.
constexpr Kernel kernels[][2] = {
    {{"gemv", spv::gemv}, {"gemv", spv::gemv_exact}},
    {{"gemm_tiled", spv::gemm_tiled}, {"gemm_tiled", spv::gemm_tiled_exact}},
    {{"gemm_db", spv::gemm_db}, {"gemm_db", spv::gemm_db_exact}},
    {{"gemm_reg", spv::gemm_reg}, {"gemm_reg", spv::gemm_reg_exact}},  // split K: reg, then reduce
    {{"gemm_reg", spv::gemm_reg}, {"gemm_reg", spv::gemm_reg_exact}},
    {{"gemm_naive", spv::gemm_naive}, {"gemm_naive", spv::gemm_naive_exact}},
    {{"gemm_large", spv::gemm_large}, {}},
    {{"gemm_large", spv::gemm_medium}, {}},
    {{"gemm_coopmat", spv::gemm_coopmat}, {}},
};
constexpr Kernel gemv_vector_kernel{"gemv_vector", spv::gemv_vector};
constexpr Kernel reduce_kernel{"gemm_split_k_reduce", spv::gemm_split_k_reduce};

struct Product {
    std::string_view op;
    Tensor a, b, bias, c;
    GemmProblem problem;
    Shape batch;  // merged batch axes, outermost first
    Strides a_batch, b_batch;
    std::int64_t a_row, a_col, b_row, b_col;
};

/// Merges batch axes, and moves them into the rows of `a` where `b` is the same for all of them.
void fold_batch(Product& p, const Shape& shape) {
    const int rank = shape.size();
    const Layout a = expand(p.a.layout(), [&] {
        Shape s = shape;
        s.push_back(p.problem.m), s.push_back(p.problem.k);
        return s;
    }());
    const Layout b = expand(p.b.layout(), [&] {
        Shape s = shape;
        s.push_back(p.problem.k), s.push_back(p.problem.n);
        return s;
    }());
    p.a_row = a.strides[rank], p.a_col = a.strides[rank + 1];
    p.b_row = b.strides[rank], p.b_col = b.strides[rank + 1];
    Strides steps[2] = {Strides(std::span(a.strides.begin(), static_cast<std::size_t>(rank))),
                        Strides(std::span(b.strides.begin(), static_cast<std::size_t>(rank)))};
    const Collapsed merged = collapse(shape, steps);
    p.batch = merged.shape, p.a_batch = merged.strides[0], p.b_batch = merged.strides[1];
    // Rows that continue from one matrix to the next make one taller matrix.
    const auto continues = [&] {
        return p.batch.back() == 1 ||
               (p.b_batch.back() == 0 && (p.problem.m == 1 || p.a_batch.back() == p.a_row * p.problem.m));
    };
    while (!p.batch.empty() && continues()) {
        if (p.problem.m == 1 && p.batch.back() > 1) p.a_row = p.a_batch.back();
        p.problem.m *= p.batch.back();
        const int last = p.batch.size() - 1;
        p.batch.erase(last), p.a_batch.erase(last), p.b_batch.erase(last);
    }
    p.problem.batch = numel(p.batch);
}

GemmArgs arguments(const Product& p) {
    GemmArgs args{.a = p.a.address(),
                  .b = p.b.address(),
                  .c = p.c.address(),
                  .bias = 0,
                  .a_row = p.a_row,
                  .a_col = p.a_col,
                  .b_row = p.b_row,
                  .b_col = p.b_col,
                  .a_outer = 0,
                  .a_inner = 0,
                  .b_outer = 0,
                  .b_inner = 0,
                  .m = static_cast<std::uint32_t>(p.problem.m),
                  .n = static_cast<std::uint32_t>(p.problem.n),
                  .k = static_cast<std::uint32_t>(p.problem.k),
                  .batch = 1,
                  .batch_inner = 1,
                  .bias_stride = 0,
                  .k_part = 0x80000000u};
    if (p.bias) args.bias = p.bias.address(), args.bias_stride = static_cast<std::uint32_t>(p.bias.strides()[0]);
    const int rank = p.batch.size();
    if (rank >= 1) {
        args.batch = args.batch_inner = static_cast<std::uint32_t>(p.batch[rank - 1]);
        args.a_inner = p.a_batch[rank - 1], args.b_inner = p.b_batch[rank - 1];
    }
    if (rank >= 2) {
        args.batch *= static_cast<std::uint32_t>(p.batch[rank - 2]);
        args.a_outer = p.a_batch[rank - 2], args.b_outer = p.b_batch[rank - 2];
    }
    return args;
}

/// Calls body(args) for every index of the batch axes beyond the two that the arguments hold.
template <class Body>
void for_outer_axes(const Product& p, const Body& body) {
    const GemmArgs base = arguments(p);
    const std::int64_t item = static_cast<std::int64_t>(itemsize(p.c.dtype()));
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

/// Every address that a vector of 16 bytes along the packed axis can start at is a multiple of 16.
bool is_aligned(const Product& p) {
    const std::int64_t per = 16 / static_cast<std::int64_t>(itemsize(p.problem.dtype));
    const auto packed = [&](std::int64_t row, std::int64_t col) {
        return (row == 1 && col % per == 0) || (col == 1 && row % per == 0);
    };
    if (p.a.address() % 16 || p.b.address() % 16) return false;
    // The kernels step from line to line of a tile in 32 bits.
    constexpr std::int64_t kFurthest = std::int64_t{1} << 24;
    if (std::max({p.a_row, p.a_col, p.b_row, p.b_col}) >= kFurthest) return false;
    if (!packed(p.problem.m == 1 ? 0 : p.a_row, p.a_col) || !packed(p.b_row, p.problem.n == 1 ? 0 : p.b_col))
        return false;
    for (const Strides* batch : {&p.a_batch, &p.b_batch})
        for (const std::int64_t stride : *batch)
            if (stride % per) return false;
    return true;
}

/// Rows of `a` and columns of `b` can be read along K in vectors.
bool vectors_along_k(const Product& p) {
    const DType d = p.problem.dtype;
    if (d != DType::f32 && d != DType::f16 && d != DType::bf16) return false;
    const std::int64_t per = 16 / static_cast<std::int64_t>(itemsize(d));
    return p.problem.aligned && p.problem.k_packed && (p.problem.m == 1 || p.a_row % per == 0) &&
           (p.problem.n == 1 || p.b_col % per == 0);
}

std::uint64_t groups(Pipeline pipeline, const GemmArgs& args) {
    const std::uint64_t m = args.m, n = args.n, batch = args.batch;
    switch (pipeline) {
        case Pipeline::gemv:
            return batch * m * n;
        case Pipeline::tiled:
        case Pipeline::db:
            return batch * ceil_div(m, 16) * ceil_div(n, 16);
        case Pipeline::coopmat:
            return batch * ceil_div(m, 128) * ceil_div(n, 128);
        case Pipeline::large:
            return batch * ceil_div(m, 128) * ceil_div(n, 256);
        case Pipeline::medium:
            return batch * ceil_div(m, 64) * ceil_div(n, 128);
        case Pipeline::naive:
            return ceil_div(batch * m * n, 128);
        default:
            return batch * ceil_div(m, 32) * ceil_div(n, 32);
    }
}

/// Which of the two mappings of threads to elements reads neighbours in memory.
Spec gemm_spec(const GemmArgs& args, bool split) {
    const bool along_a = std::abs(args.a_col) <= std::abs(args.a_row),
               along_b = std::abs(args.b_row) < std::abs(args.b_col);
    return Spec{along_a, along_b, split};
}

void launch_split(Stream& on, const Product& p, GemmArgs args, const Choice& choice, const Kernel& kernel) {
    // One matrix after another as the workspace allows: the parts do not depend on the batch.
    constexpr std::uint64_t kWorkspace = (std::uint64_t{64} << 20) / sizeof(float);
    const std::uint64_t matrix = std::uint64_t{args.m} * args.n;
    const std::uint32_t most = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kWorkspace / (matrix * choice.parts), 1, args.batch_inner));
    const std::uint32_t inner = args.batch_inner, outer = args.batch / inner;
    const Tensor workspace = empty({static_cast<std::int64_t>(most * choice.parts * matrix)}, DType::f32, p.c.device());
    const Address item = itemsize(p.c.dtype());
    for (std::uint32_t o = 0; o < outer; o++) {
        for (std::uint32_t i = 0; i < inner; i += most) {
            GemmArgs part = args;
            part.a += static_cast<Address>(o * args.a_outer + i * args.a_inner) * item;
            part.b += static_cast<Address>(o * args.b_outer + i * args.b_inner) * item;
            part.batch = part.batch_inner = std::min(most, inner - i);
            part.c = workspace.address();
            part.bias = 0;
            part.k_part = choice.k_part;
            on.launch(kernel, p.problem.dtype, gemm_spec(args, true),
                      linear_grid(choice.parts * groups(Pipeline::reg, part)), part, {p.a, p.b}, {workspace});
            const SplitKArgs reduce{.partial = workspace.address(),
                                    .c = args.c + (std::uint64_t{o} * inner + i) * matrix * item,
                                    .bias = args.bias,
                                    .count = part.batch * matrix,
                                    .n = args.n,
                                    .parts = choice.parts,
                                    .bias_stride = args.bias_stride};
            on.launch(reduce_kernel, p.problem.dtype, {}, linear_grid(ceil_div(reduce.count, 128)), reduce,
                      {workspace, p.bias}, {p.c});
        }
    }
}

void launch_gpu(Stream& on, const Product& p) {
    const Choice choice = choose_gemm(p.op, p.problem, on.limits(), on.dispatch_count());
    const bool exact =
        p.problem.precision == Precision::exact && is_floating(p.problem.dtype) && p.problem.dtype != DType::f64;
    const Kernel& kernel = kernels[static_cast<int>(choice.pipeline)][exact];
    for_outer_axes(p, [&](const GemmArgs& args) {
        if (choice.pipeline == Pipeline::split_k) return launch_split(on, p, args, choice, kernel);
        const std::uint64_t count = groups(choice.pipeline, args);
        check<Error>(count < 0x80000000u, p.op, ": expected fewer than 2^31 workgroups, got ", count);
        const bool vector = choice.pipeline == Pipeline::gemv && !exact && vectors_along_k(p);
        const Spec spec = choice.pipeline == Pipeline::gemv ? Spec{} : gemm_spec(args, false);
        on.launch(vector ? gemv_vector_kernel : kernel, p.problem.dtype, spec, linear_grid(count), args,
                  {p.a, p.b, p.bias}, {p.c});
    });
}

void launch_cpu(Stream& on, const Product& p) {
    const bool exact = p.problem.precision == Precision::exact;
    publish_gemm(p.op, "cpu", exact ? "exact order of sums" : "the device is the CPU", on.dispatch_count());
    for_outer_axes(p, [&](const GemmArgs& args) {
        on.launch(cpu_kernel, p.problem.dtype, Spec{exact}, {}, args, {p.a, p.b, p.bias}, {p.c});
    });
}

}  // namespace

Tensor gemm(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& bias) {
    Product p{.op = op,
              .a = a,
              .b = b,
              .bias = bias,
              .c = {},
              .problem = {},
              .batch = {},
              .a_batch = {},
              .b_batch = {},
              .a_row = 0,
              .a_col = 0,
              .b_row = 0,
              .b_col = 0};
    Shape batch_a = a.shape(), batch_b = b.shape();
    batch_a.erase(a.ndim() - 1), batch_a.erase(a.ndim() - 2);
    batch_b.erase(b.ndim() - 1), batch_b.erase(b.ndim() - 2);
    const Shape batch = broadcast_shapes(op, batch_a, batch_b);
    p.problem.m = a.size(-2), p.problem.k = a.size(-1), p.problem.n = b.size(-1);
    p.problem.dtype = a.dtype();
    p.problem.precision = float32_matmul_precision();
    Shape shape = batch;
    shape.push_back(p.problem.m), shape.push_back(p.problem.n);
    p.c = empty(shape, a.dtype(), a.device());
    if (p.c.numel() == 0) return p.c;
    fold_batch(p, batch);
    p.problem.aligned = is_aligned(p);
    p.problem.k_packed = p.problem.k <= 1 || (p.a_col == 1 && p.b_row == 1);
    for (const std::int64_t extent : {p.problem.m, p.problem.n, p.problem.k, p.problem.batch})
        check<Error>(extent < (std::int64_t{1} << 31), op, ": expected extents below 2^31, got ", extent);
    Stream& on = stream_of(a);
    publish_precision(op, p.problem, on.dispatch_count());
    if (a.device().is_cpu())
        launch_cpu(on, p);
    else
        launch_gpu(on, p);
    return p.c;
}

}  // namespace vkml

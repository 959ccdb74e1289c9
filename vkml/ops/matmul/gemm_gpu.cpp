#include <algorithm>
#include <cstdlib>

#include "vkml/ops/matmul/gemm.spv.h"
#include "vkml/ops/matmul/gemm_choice.h"
#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/ops/matmul/gemm_product.h"
#include "vkml/ops/matmul/gemm_tiles.h"
#include "vkml/ops/matmul/gemv.spv.h"
#include "vkml/ops/matmul/gemv_columns.spv.h"
#include "vkml/ops/matmul/split_k.spv.h"
#include "vkml/ops/matmul/split_k_args.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

// The kernels of any strides, indexed by Pipeline, then by whether the precision is `exact`.
constexpr Kernel kernels[][2] = {
    {{"gemv", spv::gemv}, {"gemv", spv::gemv_exact}},
    {{}, {}},  // gemv_columns: below
    {{"gemm_naive", spv::gemm_naive}, {"gemm_naive", spv::gemm_naive_exact}},
    {{"gemm_tiled", spv::gemm_tiled}, {"gemm_tiled", spv::gemm_tiled_exact}},
    {{"gemm_db", spv::gemm_db}, {"gemm_db", spv::gemm_db_exact}},
    {{"gemm_reg", spv::gemm_reg}, {"gemm_reg", spv::gemm_reg_exact}},
    {{"gemm_split_k", spv::gemm_split_k}, {"gemm_split_k", spv::gemm_split_k_exact}},
};
// By what it reads: across the columns, along K by elements, and in vectors.
constexpr Kernel columns[] = {{"gemv_columns", spv::gemv_columns_across},
                              {"gemv_columns", spv::gemv_columns_along},
                              {"gemv_columns", spv::gemv_columns_vector}};
constexpr Kernel gemv_vector_kernel{"gemv_vector", spv::gemv_vector};
constexpr Kernel reduce_kernel{"gemm_split_k_reduce", spv::gemm_split_k_reduce};

bool is_exact(const Product& p) {
    return p.problem.precision == Precision::exact && is_floating(p.problem.dtype) && p.problem.dtype != DType::f64;
}

/// Rows of `a` and columns of `b` can be read along K in vectors.
bool vectors_along_k(const Product& p) {
    const DType d = p.problem.dtype;
    if (d != DType::f32 && d != DType::f16 && d != DType::bf16) return false;
    const std::int64_t per = 16 / static_cast<std::int64_t>(itemsize(d));
    return p.problem.a_aligned && p.problem.b_aligned && p.problem.k_packed &&
           (p.problem.m == 1 || p.a_row % per == 0) && (p.problem.n == 1 || p.b_col % per == 0);
}

std::uint64_t groups(Pipeline pipeline, const GemmArgs& args) {
    const std::uint64_t m = args.m, n = args.n, batch = args.batch;
    switch (pipeline) {
        case Pipeline::gemv:
            return batch * m * n;
        case Pipeline::columns:
            return batch * ceil_div(n, 64);
        case Pipeline::tiled:
        case Pipeline::db:
            return batch * ceil_div(m, 16) * ceil_div(n, 16);
        case Pipeline::naive:
            return ceil_div(batch * m * n, 128);
        default:
            return batch * ceil_div(m, 32) * ceil_div(n, 32);
    }
}

/// Which of the two mappings of threads to elements reads neighbours in memory.
Spec gemm_spec(const GemmArgs& args, bool split, Activation activation) {
    const bool along_a = std::abs(args.a_col) <= std::abs(args.a_row),
               along_b = std::abs(args.b_row) < std::abs(args.b_col);
    return Spec{along_a, along_b, split, static_cast<std::uint32_t>(activation)};
}

/// One row, in one part of K or in several.
void launch_columns(Stream& on, const Product& p, const GemmArgs& args, std::uint32_t parts, bool split,
                    const Tensor& c) {
    const bool along = std::abs(args.b_row) < std::abs(args.b_col);
    const Kernel& kernel = columns[!along ? 0 : vectors_along_k(p) ? 2 : 1];
    const auto activation = static_cast<std::uint32_t>(split ? Activation::none : p.activation);
    on.launch(kernel, p.problem.dtype, Spec{split, activation}, linear_grid(parts * groups(Pipeline::columns, args)),
              args, {p.a, p.b, p.bias}, {c});
}

void launch_plain(Stream& on, const Product& p, const GemmArgs& args, Pipeline pipeline) {
    const bool exact = is_exact(p);
    const std::uint64_t count = groups(pipeline, args);
    check<Error>(count < 0x80000000u, p.op, ": expected fewer than 2^31 workgroups, got ", count);
    if (pipeline == Pipeline::columns) return launch_columns(on, p, args, 1, false, p.c);
    if (pipeline != Pipeline::gemv)
        return on.launch(kernels[static_cast<int>(pipeline)][exact], p.problem.dtype,
                         gemm_spec(args, false, p.activation), linear_grid(count), args, {p.a, p.b, p.bias}, {p.c});
    // One order of sums whether or not the lines are aligned: a row alone may be where its matrix is not.
    const bool chained = !exact && p.problem.dtype != DType::f64 && is_floating(p.problem.dtype);
    const std::uint32_t threads = std::min(256u, on.limits().max_workgroup_invocations);
    const bool aligned = vectors_along_k(p);
    // Elements of one turn of the kernel's loop: 4 vectors of 4, or 2 of 8. Rows are along one axis of the grid.
    const bool whole =
        aligned && args.n == 1 && args.batch == 1 && args.m <= kGridFold && args.k > 0 && args.k % (threads * 16) == 0;
    const Spec spec{static_cast<std::uint32_t>(p.activation), threads, aligned, whole};
    on.launch(chained ? gemv_vector_kernel : kernels[0][exact], p.problem.dtype, chained ? spec : Spec{},
              linear_grid(count), args, {p.a, p.b, p.bias}, {p.c});
}

/// Parts of one round, written one after another to the workspace.
void launch_parts(Stream& on, const Product& p, const GemmArgs& part, const Choice& choice, std::uint32_t parts,
                  const Tensor& workspace, const Tensor& a, const Tensor& b) {
    if (choice.pipeline > Pipeline::split_k)
        return launch_tiles(on, p, part, choice.pipeline, parts, true, a, b, workspace);
    if (choice.pipeline == Pipeline::columns) return launch_columns(on, p, part, parts, true, workspace);
    on.launch(kernels[static_cast<int>(choice.pipeline)][is_exact(p)], p.problem.dtype,
              gemm_spec(part, true, Activation::none), linear_grid(parts * groups(choice.pipeline, part)), part, {a, b},
              {workspace});
}

/// One or more matrices of the batch, as the workspace allows: the parts do not depend on the batch. More parts than it
/// holds are added in rounds, in the same order.
void launch_split(Stream& on, const Product& p, GemmArgs args, const Choice& choice) {
    constexpr std::uint64_t kFloats = kSplitWorkspace / sizeof(float);
    const std::uint64_t matrix = std::uint64_t{args.m} * args.n;
    const auto a_ready = ready_operand(on, p, args, choice.pipeline, true);
    const auto b_ready = ready_operand(on, p, args, choice.pipeline, false);
    const auto parts = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kFloats / matrix, 1, choice.parts));
    const std::uint32_t inner = args.batch_inner, outer = args.batch / inner;
    const auto most = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kFloats / (matrix * parts), 1, inner));
    const bool rounds = parts < choice.parts;
    const Tensor workspace =
        empty({static_cast<std::int64_t>(most * (parts + (rounds ? 1 : 0)) * matrix)}, DType::f32, p.c.device());
    const Address item = itemsize(p.c.dtype());
    // Rounded operands are of another type than c.
    const Address from = operand_itemsize(p, choice.pipeline);
    for (std::uint32_t index = 0; index < outer * ceil_div(inner, most); index++) {
        const auto chunks = static_cast<std::uint32_t>(ceil_div(inner, most));
        const std::uint32_t o = index / chunks, i = index % chunks * most;
        for (std::uint32_t done = 0; done < choice.parts; done += parts) {
            GemmArgs part = args;
            const std::int64_t k = std::int64_t{done} * choice.k_part;
            part.a += static_cast<Address>(o * args.a_outer + i * args.a_inner + k * args.a_col) * from;
            part.b += static_cast<Address>(o * args.b_outer + i * args.b_inner + k * args.b_row) * from;
            part.batch = part.batch_inner = std::min(most, inner - i);
            part.c = workspace.address();
            part.bias = 0;
            part.k_part = choice.k_part;
            const std::uint32_t now = std::min(parts, choice.parts - done);
            part.k = static_cast<std::uint32_t>(std::min<std::int64_t>(args.k - k, std::int64_t{now} * choice.k_part));
            launch_parts(on, p, part, choice, now, workspace, a_ready, b_ready);
            const bool last = done + now == choice.parts;
            const SplitKArgs reduce{.partial = workspace.address(),
                                    .carry = workspace.address() + std::uint64_t{most} * parts * matrix * sizeof(float),
                                    .c = args.c + (std::uint64_t{o} * inner + i) * matrix * item,
                                    .bias = args.bias,
                                    .count = part.batch * matrix,
                                    .n = args.n,
                                    .parts = now,
                                    .first = done == 0,
                                    .last = last};
            const bool wide = !is_exact(p) && args.n % 4 == 0;
            on.launch(reduce_kernel, p.problem.dtype, {is_exact(p), static_cast<std::uint32_t>(p.activation), wide},
                      linear_grid(ceil_div(reduce.count, wide ? 512 : 128)), reduce, {workspace, p.bias},
                      {p.c, workspace});
        }
    }
}

}  // namespace

void launch_gemm_gpu(Stream& on, const Product& p) {
    const Choice choice = choose_gemm(p.op, p.problem, on.device(), on.limits(), on.dispatch_count());
    for_outer_axes(p, [&](const GemmArgs& args) {
        if (choice.pipeline == Pipeline::high || choice.pipeline == Pipeline::high_small)
            return launch_high(on, p, args, choice.pipeline);
        if (choice.pipeline == Pipeline::parts_few) return launch_parts_few(on, p, args);
        if (is_split(choice.pipeline) || choice.parts > 1) return launch_split(on, p, args, choice);
        if (choice.pipeline < Pipeline::split_k) return launch_plain(on, p, args, choice.pipeline);
        GemmArgs ready = args;
        const Tensor a = ready_operand(on, p, ready, choice.pipeline, true);
        const Tensor b = ready_operand(on, p, ready, choice.pipeline, false);
        launch_tiles(on, p, ready, choice.pipeline, 1, false, a, b, p.c);
    });
}

}  // namespace vkml

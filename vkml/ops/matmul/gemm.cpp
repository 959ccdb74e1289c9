#include "vkml/ops/matmul/gemm.h"

#include <algorithm>
#include <cstdlib>

#include "vkml/ops/cast/cast.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/matmul/gemm_kernel.h"
#include "vkml/ops/matmul/gemm_product.h"
#include "vkml/runtime/registry.h"

namespace vkml {

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

void describe_layout(Product& p) {
    GemmProblem& problem = p.problem;
    problem.k_packed = problem.k <= 1 || (p.a_col == 1 && p.b_row == 1);
    problem.a_along = p.a_col == 1, problem.b_along = p.b_row == 1;
    if (problem.dtype != DType::f32 && problem.dtype != DType::f16 && problem.dtype != DType::bf16) return;
    const std::int64_t per = 16 / static_cast<std::int64_t>(itemsize(problem.dtype));
    // Every address that a vector of 16 bytes along the packed axis can start at is a multiple of 16. The kernels step
    // from line to line of a tile in 32 bits.
    const auto aligned = [&](const Tensor& t, std::int64_t line, std::int64_t k, std::int64_t lines,
                             const Strides& batch) {
        constexpr std::int64_t kFurthest = std::int64_t{1} << 24;
        if (t.address() % 16 || line < 0 || k < 0 || std::max(line, k) >= kFurthest) return false;
        if (!(k == 1 && (lines == 1 || line % per == 0)) && !(line == 1 && k % per == 0 && lines % per == 0))
            return false;
        return std::all_of(batch.begin(), batch.end(), [&](std::int64_t stride) { return stride % per == 0; });
    };
    problem.a_aligned = aligned(p.a, p.a_row, p.a_col, problem.m, p.a_batch);
    problem.b_aligned = aligned(p.b, p.b_col, p.b_row, problem.n, p.b_batch);
}

GemmArgs arguments(const Product& p) {
    GemmArgs args{.a = p.a.address(),
                  .b = p.b.address(),
                  .c = p.c.address(),
                  .bias = p.bias ? p.bias.address() : 0,
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
                  .flags = 0,
                  .k_part = 0x80000000u,
                  .chain = gemm_chain(p.problem)};
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

namespace {

constexpr Kernel cpu_kernel{"gemm", {}, gemm_cpu};

void launch_cpu(Stream& on, const Product& p) {
    const bool exact = p.problem.precision == Precision::exact;
    publish_gemm(p.op, "cpu", exact ? "exact order of sums" : "the device is the CPU", on.dispatch_count());
    for_outer_axes(p, [&](const GemmArgs& args) {
        on.launch(cpu_kernel, p.problem.dtype, Spec{exact}, {}, args, {p.a, p.b, p.bias}, {p.c});
    });
}

/// Rounded to bf16, in f32 again; an expanded axis is rounded once.
Tensor rounded_to_bf16(const Tensor& t) {
    Layout once = t.layout();
    for (int i = 0; i < once.shape.size(); i++)
        if (once.strides[i] == 0 && once.shape[i] > 1) once.shape[i] = 1;
    const Tensor values = cast(cast(t.view(once), DType::bf16), DType::f32);
    return values.view(expand(values.layout(), t.shape()));
}

Tensor activated(const Tensor& x, Activation activation) {
    switch (activation) {
        case Activation::relu:
            return relu(x);
        case Activation::gelu:
            return gelu(x);
        case Activation::gelu_tanh:
            return gelu(x, "tanh");
        case Activation::silu:
            return silu(x);
        default:
            return x;
    }
}

/// A column from a matrix packed along its rows is a row times the transposed matrix: the same sums, read in order.
void turn_columns(Product& p) {
    if (p.problem.n != 1 || p.problem.m == 1 || p.a_col == 1 || p.bias.defined()) return;
    std::swap(p.a, p.b);
    std::swap(p.a_batch, p.b_batch);
    std::swap(p.problem.m, p.problem.n);
    const std::int64_t row = p.a_row, col = p.a_col;
    p.a_row = p.b_col, p.a_col = p.b_row, p.b_row = col, p.b_col = row;
}

/// Kernels apply the activation where they hold f32 sums in an order of their choice.
bool fuses(const Product& p) {
    return !p.a.device().is_cpu() && p.problem.precision != Precision::exact && is_floating(p.problem.dtype) &&
           p.problem.dtype != DType::f64;
}

}  // namespace

Tensor gemm(std::string_view op, const Tensor& a, const Tensor& b, const Tensor& bias, Activation activation) {
    Product p;
    p.op = op, p.a = a, p.b = b, p.activation = activation;
    if (bias.defined()) p.bias = contiguous(bias);
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
    Stream& on = stream_of(a);
    const PrecisionChoice precision = choose_precision(op, p.problem, a.device(), on.limits(), on.dispatch_count());
    p.problem.precision = precision.precision;
    p.problem.no_parts = refuses_parts(p.problem, on);
    if (precision.round) p.a = rounded_to_bf16(a), p.b = rounded_to_bf16(b);
    fold_batch(p, batch);
    if (!a.device().is_cpu()) turn_columns(p);
    describe_layout(p);
    for (const std::int64_t extent : {p.problem.m, p.problem.n, p.problem.k, p.problem.batch})
        check<Error>(extent < (std::int64_t{1} << 31), op, ": expected extents below 2^31, got ", extent);
    const bool fused = fuses(p);
    if (!fused) p.activation = Activation::none;
    if (a.device().is_cpu())
        launch_cpu(on, p);
    else
        launch_gemm_gpu(on, p);
    return fused ? p.c : activated(p.c, activation);
}

}  // namespace vkml

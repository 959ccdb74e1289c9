#include <algorithm>
#include <cstring>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/index/select.spv.h"
#include "vkml/ops/index/select_args.h"
#include "vkml/ops/sort/rows.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::int64_t kWide = 16;  // bytes

struct Unit16 {
    std::uint64_t half[2];
};

template <class T, class Index>
void select_elements(const SelectArgs& args) {
    const T* input = reinterpret_cast<const T*>(args.input);
    T* output = reinterpret_cast<T*>(args.output);
    const Index* index = reinterpret_cast<const Index*>(args.index);
    const std::int64_t inner = args.inner, lines = static_cast<std::int64_t>(args.count) / inner;
    cpu::parallel_for(lines, std::max<std::int64_t>(1, cpu::kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; line++) {
            const std::int64_t outer = line / args.rows, row = line % args.rows;
            const auto at = static_cast<std::int64_t>(index[row * args.index_stride]);
            T* to = output + line * inner;
            const bool skipped = at == args.skip && at >= kNoRow;
            if (skipped || at < 0 || at >= args.extent) {
                if (!skipped) report_fault(args.fault, FaultCode::index_out_of_range, args.site, at, args.extent);
                std::memset(static_cast<void*>(to), 0, static_cast<std::size_t>(inner) * sizeof(T));
                continue;
            }
            const T* from = input + outer * args.outer_stride + at * args.row_stride;
            if (args.inner_stride == 1)
                std::memcpy(to, from, static_cast<std::size_t>(inner) * sizeof(T));
            else
                for (std::int64_t i = 0; i < inner; i++) to[i] = from[i * args.inner_stride];
        }
    });
}

template <class Index>
void select_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const SelectArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1:
            return select_elements<std::uint8_t, Index>(args);
        case 2:
            return select_elements<std::uint16_t, Index>(args);
        case 4:
            return select_elements<std::uint32_t, Index>(args);
        default:
            return select_elements<std::uint64_t, Index>(args);
    }
}

template <class Index>
void select_wide_cpu(const void* raw, DType, const Spec&, Grid) {
    select_elements<Unit16, Index>(*static_cast<const SelectArgs*>(raw));
}

constexpr Kernel kernel_i64{"select_rows", spv::select_rows_i64, select_cpu<std::int64_t>};
constexpr Kernel kernel_i32{"select_rows", spv::select_rows_i32, select_cpu<std::int32_t>};
constexpr Kernel wide_i64{"select_rows_wide", spv::select_rows_wide_i64, select_wide_cpu<std::int64_t>};
constexpr Kernel wide_i32{"select_rows_wide", spv::select_rows_wide_i32, select_wide_cpu<std::int32_t>};
static_assert(sizeof(SelectArgs) <= kMaxPushConstants);

/// Rewrites the last axis in units of 16 bytes if every start is a multiple of it.
bool widen(Rows& rows, const Tensor& from, const Tensor& to) {
    const auto item = static_cast<std::int64_t>(itemsize(from.dtype()));
    const auto odd = [&](std::int64_t stride) { return stride * item % kWide != 0; };
    if (rows.inner_stride != 1 || odd(rows.inner) || odd(rows.row_stride) || odd(rows.outer_stride)) return false;
    if (from.address() % kWide != 0 || to.address() % kWide != 0) return false;
    for (std::int64_t* n : {&rows.inner, &rows.row_stride, &rows.outer_stride}) *n = *n * item / kWide;
    return true;
}

void launch(std::string_view op, const Tensor& input, int dim, const Tensor& index, std::int64_t skip,
            const Tensor& out) {
    Tensor from = input;
    Rows rows;
    if (!as_rows(from, dim, rows)) {
        from = contiguous(input.view(input.layout()));
        as_rows(from, dim, rows);
    }
    // What an empty axis contributes would be divided by.
    if (rows.outer == 1) rows.outer_stride = 0;
    if (rows.length == 1) rows.row_stride = 0;
    const bool wide = widen(rows, from, out);
    Stream& on = stream_of(out);
    const std::int64_t count = rows.outer * index.numel() * rows.inner;
    const SelectArgs args{.input = from.address(),
                          .output = out.address(),
                          .index = index.address(),
                          .fault = on.fault_address(),
                          .outer_stride = rows.outer_stride,
                          .row_stride = rows.row_stride,
                          .inner_stride = rows.inner_stride,
                          .index_stride = index.ndim() ? index.strides()[0] : 0,
                          .extent = rows.length,
                          .skip = skip,
                          .count = static_cast<std::uint64_t>(count),
                          .rows = static_cast<std::uint32_t>(index.numel()),
                          .inner = static_cast<std::uint32_t>(rows.inner),
                          .site = fault_site(op)};
    const Kernel& kernel =
        index.dtype() == DType::i64 ? (wide ? wide_i64 : kernel_i64) : (wide ? wide_i32 : kernel_i32);
    on.launch(kernel, wide ? DType::i64 : storage_dtype(itemsize(out.dtype())),
              Spec{kThreads, count > UINT32_MAX ? 1u : 0u}, linear_grid(ceil_div(args.count, kThreads)), args,
              {from, index}, {out});
}

}  // namespace

void check_index_dtype(std::string_view op, const Tensor& index) {
    check<DTypeError>(index.dtype() == DType::i64 || index.dtype() == DType::i32, op,
                      op == "index" ? ": expected int64, int32 or bool" : ": index: expected int64 or int32", ", got ",
                      index.dtype());
}

Tensor select_rows(std::string_view op, const Tensor& input, int dim, const Tensor& index, std::int64_t skip) {
    Shape shape = input.shape();
    shape[dim] = index.numel();
    check<IndexError>(shape[dim] == 0 || input.shape()[dim] > 0 || skip != kNoSkip, op,
                      ": expected an index into a non-empty axis, got shape ", input.shape());
    Tensor out = empty(shape, input.dtype(), input.device());
    if (out.numel() > 0 && input.numel() == 0)
        out = zeros_like(out);
    else if (out.numel() > 0)
        launch(op, input, dim, index, skip, out);
    return record(
        op, out, {input, index}, keep_inputs(1), [dim, skip, shape = input.shape()](const Backward& b) -> Grads {
            const Tensor& g = b.grad();
            return {add_rows("index_add", zeros(shape, g.dtype(), g.device()), dim, b.input(1), g, skip, true),
                    Tensor{}};
        });
}

}  // namespace vkml

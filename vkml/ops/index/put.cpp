#include <algorithm>

#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/index/linear.spv.h"
#include "vkml/ops/index/linear_args.h"
#include "vkml/ops/index/put.spv.h"
#include "vkml/ops/index/put_args.h"
#include "vkml/ops/sort/rows.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/fault.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr int kRankLimit = 5;

template <class Index>
void linear_cpu(const void* raw, DType, const Spec& spec, Grid) {
    const auto& args = *static_cast<const LinearArgs*>(raw);
    const int rank = static_cast<int>(spec[1]);
    const bool first = spec[2] != 0;
    const Index* index = reinterpret_cast<const Index*>(args.index);
    auto* output = reinterpret_cast<std::int64_t*>(args.output);
    cpu::parallel_for(args.count, cpu::kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i++) {
            std::int64_t offset = 0;
            std::uint32_t left = static_cast<std::uint32_t>(i);
            for (int axis = rank - 1; axis > 0; axis--) {
                offset += static_cast<std::int64_t>(left % args.sizes[axis]) * args.strides[axis];
                left /= args.sizes[axis];
            }
            const auto given =
                static_cast<std::int64_t>(index[offset + static_cast<std::int64_t>(left) * args.strides[0]]);
            const std::int64_t at = given < 0 ? given + args.extent : given;
            std::int64_t before = first ? 0 : output[i];
            if (at < 0 || at >= args.extent) {
                report_fault(args.fault, FaultCode::index_out_of_range, args.site, given, args.extent);
                before = kNoRow;
            }
            output[i] = before < 0 ? kNoRow : before * args.extent + at;
        }
    });
}

/// Rows in order, so that the last of equal ones wins as it does on the GPU.
template <class T>
void put_elements(const PutArgs& args) {
    const T* source = reinterpret_cast<const T*>(args.source);
    T* target = reinterpret_cast<T*>(args.target);
    const auto* index = reinterpret_cast<const std::int64_t*>(args.index);
    const std::int64_t inner = args.inner, rows = args.rows,
                       outer = static_cast<std::int64_t>(args.count) / (inner * rows);
    for (std::int64_t o = 0; o < outer; o++)
        for (std::int64_t row = 0; row < rows; row++) {
            if (index[row] < 0) continue;
            T* to = target + o * args.target_strides[0] + index[row] * args.target_strides[1];
            const T* from = source + o * args.source_strides[0] + row * args.source_strides[1];
            for (std::int64_t i = 0; i < inner; i++) to[i * args.target_strides[2]] = from[i * args.source_strides[2]];
        }
}

void put_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const PutArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1:
            return put_elements<std::uint8_t>(args);
        case 2:
            return put_elements<std::uint16_t>(args);
        case 4:
            return put_elements<std::uint32_t>(args);
        default:
            return put_elements<std::uint64_t>(args);
    }
}

constexpr Kernel linear_i64{"index_linear", spv::index_linear_i64, linear_cpu<std::int64_t>};
constexpr Kernel linear_i32{"index_linear", spv::index_linear_i32, linear_cpu<std::int32_t>};
constexpr Kernel winner_kernel{"put_winner", spv::put_winner};
constexpr Kernel put_kernel{"put_rows", spv::put_rows, put_cpu};
static_assert(sizeof(LinearArgs) <= kMaxPushConstants && sizeof(PutArgs) <= kMaxPushConstants);

}  // namespace

Tensor linear_index(std::string_view op, std::span<const Tensor> indices, const Shape& extents, const Shape& shape) {
    const Device device = indices[0].device();
    Tensor out = empty(shape, DType::i64, device);
    if (out.numel() == 0) return out;
    check(out.numel() < (std::int64_t{1} << 31), op, ": expected fewer than 2^31 indices, got ", out.numel());
    Stream& on = stream(device);
    for (int k = 0; k < static_cast<int>(indices.size()); k++) {
        Tensor index =
            indices[static_cast<std::size_t>(k)].view(expand(indices[static_cast<std::size_t>(k)].layout(), shape));
        Strides one[] = {index.strides()};
        Collapsed loop = collapse(shape, one);
        if (loop.shape.size() > kRankLimit) {
            index = contiguous(index);
            one[0] = index.strides();
            loop = collapse(shape, one);
        }
        LinearArgs args{.index = index.address(),
                        .output = out.address(),
                        .fault = on.fault_address(),
                        .strides = {},
                        .extent = extents[k],
                        .sizes = {},
                        .count = static_cast<std::uint32_t>(out.numel()),
                        .site = fault_site(op)};
        for (int i = 0; i < loop.shape.size(); i++) {
            args.strides[i] = loop.strides[0][i];
            args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
        }
        on.launch(index.dtype() == DType::i64 ? linear_i64 : linear_i32, DType::none,
                  Spec{kThreads, static_cast<std::uint32_t>(loop.shape.size()), k == 0 ? 1u : 0u},
                  linear_grid(ceil_div(args.count, kThreads)), args, {index, out}, {out});
    }
    return out;
}

void put_rows(const Tensor& target, int dim, const Tensor& index, const Tensor& source) {
    if (source.numel() == 0 || target.numel() == 0) return;
    Rows to, from;
    Tensor through = target, values = source;
    if (!as_rows(target, dim, to)) {
        through = clone(target);
        as_rows(through, dim, to);
    }
    if (!as_rows(values, dim, from)) {
        values = contiguous(values);
        as_rows(values, dim, from);
    }
    check(to.length < (std::int64_t{1} << 31), "index: expected fewer than 2^31 places, got ", to.length);
    Stream& on = stream_of(target);
    PutArgs args{.source = values.address(),
                 .target = through.address(),
                 .index = index.address(),
                 .winner = 0,
                 .source_strides = {from.outer_stride, from.row_stride, from.inner_stride},
                 .target_strides = {to.outer_stride, to.row_stride, to.inner_stride},
                 .count = static_cast<std::uint64_t>(source.numel()),
                 .rows = static_cast<std::uint32_t>(from.length),
                 .inner = static_cast<std::uint32_t>(from.inner)};
    Tensor winner;
    if (!on.device().is_cpu()) {
        winner = full({to.length}, Scalar(0), DType::i32, target.device());
        args.winner = winner.address();
        on.launch(winner_kernel, DType::u8, Spec{kThreads}, linear_grid(ceil_div(args.rows, kThreads)), args, {index},
                  {winner});
    }
    on.launch(put_kernel, storage_dtype(itemsize(target.dtype())), Spec{kThreads},
              linear_grid(ceil_div(args.count, kThreads)), args, {values, index, winner}, {through});
    if (!through.is(target)) copy_into(target, through);
}

}  // namespace vkml

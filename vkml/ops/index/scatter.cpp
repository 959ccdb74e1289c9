#include <algorithm>
#include <bit>

#include "vkml/autograd/node.h"
#include "vkml/core/float16.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/index/scatter_kernel.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/sort/radix.h"
#include "vkml/ops/sort/rows.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

/// Sources grouped by target: those of target d are order[starts[d]] .. order[starts[d + 1] - 1], ascending.
struct Segments {
    Tensor starts, order;
};

/// Which target each source goes to, and its place. `args` lacks only its addresses.
KeyedPairs target_keys(const Tensor& index, KeysArgs args, int rank) {
    Stream& on = stream_of(index);
    KeyedPairs pairs{empty({index.numel()}, DType::i32, index.device()),
                     empty({index.numel()}, DType::i32, index.device())};
    args.index = index.address();
    args.keys = pairs.keys.address();
    args.positions = pairs.values.address();
    args.fault = on.fault_address();
    on.launch(index.dtype() == DType::i64 ? index_keys_i64_kernel : index_keys_i32_kernel, DType::none,
              Spec{kThreads, static_cast<std::uint32_t>(rank)}, linear_grid(ceil_div(args.count, kThreads)), args,
              {index}, {pairs.keys, pairs.values});
    return pairs;
}

/// Sorts the sources by target, stably.
Segments group_by_target(const Tensor& index, KeysArgs args, int rank) {
    Stream& on = stream_of(index);
    const KeyedPairs pairs = sort_pairs(target_keys(index, args, rank), 0, std::bit_width(args.sentinel));
    const Tensor starts = empty({std::int64_t{args.sentinel} + 1}, DType::i32, index.device());
    args.keys = pairs.keys.address();
    args.positions = starts.address();
    on.launch(segment_starts_kernel, DType::none, Spec{kThreads, 1},
              linear_grid(ceil_div(std::uint64_t{args.sentinel} + 1, kThreads)), args, {pairs.keys}, {starts});
    return {starts, pairs.values};
}

void add_segments(const Tensor& out, const Rows& target, const Tensor& source, const Rows& rows,
                  const Segments& segments) {
    const SegmentArgs args{.source = source.address(),
                           .output = out.address(),
                           .starts = segments.starts.address(),
                           .order = segments.order.address(),
                           .outer_stride = rows.outer_stride,
                           .row_stride = rows.row_stride,
                           .inner_stride = rows.inner_stride,
                           .count = static_cast<std::uint64_t>(target.outer * target.length * target.inner),
                           .rows = static_cast<std::uint32_t>(target.length),
                           .inner = static_cast<std::uint32_t>(target.inner)};
    stream_of(out).launch(segment_add_kernel, out.dtype(), Spec{kThreads}, linear_grid(ceil_div(args.count, kThreads)),
                          args, {source, segments.starts, segments.order}, {out});
}

Tensor unrecorded_copy(const Tensor& t) { return clone(t.view(t.layout())); }

void check_targets(std::string_view op, std::int64_t targets, std::int64_t sources) {
    check(targets < (std::int64_t{1} << 31) && sources < (std::int64_t{1} << 31), op,
          ": expected fewer than 2^31 places and sources, got ", targets, " and ", sources);
}

void check_add(std::string_view op, const Tensor& a, const Tensor& b, const char* what) {
    check<DTypeError>(a.dtype() == b.dtype(), op, ": ", what, ": expected ", a.dtype(), ", got ", b.dtype());
}

/// Adds the elements of `source`, packed and of the index's shape, to a packed `out`.
void scatter_elements(std::string_view op, const Tensor& out, int dim, const Tensor& index, const Tensor& source) {
    check_targets(op, out.numel(), index.numel());
    Strides strides = out.strides();
    const std::int64_t dim_stride = out.ndim() ? strides[dim] : 1;
    if (out.ndim()) strides[dim] = 0;
    const Strides one[] = {strides};
    const Collapsed loop = collapse(index.shape(), one);
    KeysArgs args{.index = 0,
                  .keys = 0,
                  .positions = 0,
                  .fault = 0,
                  .extent = out.ndim() ? out.shape()[dim] : 1,
                  .skip = kNoSkip,
                  .strides = {},
                  .sizes = {},
                  .dim_stride = static_cast<std::uint32_t>(dim_stride),
                  .count = static_cast<std::uint32_t>(index.numel()),
                  .sentinel = static_cast<std::uint32_t>(out.numel()),
                  .site = fault_site(op)};
    for (int i = 0; i < loop.shape.size(); i++) {
        args.strides[i] = static_cast<std::uint32_t>(loop.strides[0][i]);
        args.sizes[i] = static_cast<std::uint32_t>(loop.shape[i]);
    }
    if (out.device().is_cpu() && itemsize(out.dtype()) >= 4) {
        // One after the other in source order: the sums the sorted form makes, without sorting. 16-bit floats need an
        // f32 sum.
        const KeyedPairs pairs = target_keys(index, args, loop.shape.size());
        const SegmentArgs in_order{.source = source.address(),
                                   .output = out.address(),
                                   .starts = pairs.keys.address(),
                                   .order = 0,
                                   .outer_stride = 0,
                                   .row_stride = 1,
                                   .inner_stride = 1,
                                   .count = args.count,
                                   .rows = args.sentinel,
                                   .inner = 1};
        stream_of(out).launch(scatter_in_order_kernel, out.dtype(), {}, {}, in_order, {source, pairs.keys}, {out});
        return;
    }
    const Segments segments = group_by_target(index, args, loop.shape.size());
    add_segments(out, {.outer = 1, .length = out.numel(), .inner = 1}, source, {.row_stride = 1}, segments);
}

}  // namespace

Tensor add_rows(std::string_view op, const Tensor& base, int dim, const Tensor& index, const Tensor& source,
                std::int64_t skip, bool owned) {
    check_add(op, base, source, "source");
    Tensor out = owned ? base : unrecorded_copy(base);
    const std::int64_t extent = base.shape()[dim];
    if (source.numel() > 0) {
        check<IndexError>(extent > 0, op, ": expected an index into a non-empty axis, got shape ", base.shape());
        check_targets(op, extent, index.numel());
        const Tensor places = contiguous(index);
        Tensor from = source;
        Rows target, rows;
        as_rows(out, dim, target);
        if (!as_rows(from, dim, rows)) {
            from = contiguous(source.view(source.layout()));
            as_rows(from, dim, rows);
        }
        KeysArgs args{.index = 0,
                      .keys = 0,
                      .positions = 0,
                      .fault = 0,
                      .extent = extent,
                      .skip = skip,
                      .strides = {},
                      .sizes = {},
                      .dim_stride = 1,
                      .count = static_cast<std::uint32_t>(places.numel()),
                      .sentinel = static_cast<std::uint32_t>(extent),
                      .site = fault_site(op)};
        args.sizes[0] = args.count;
        add_segments(out, target, from, rows, group_by_target(places, args, 1));
    }
    return record(op, out, {base, source, index}, keep_inputs(2), [=](const Backward& b) -> Grads {
        Grads grads(3);
        if (b.needs(0)) grads[0] = b.grad();
        if (b.needs(1)) grads[1] = select_rows("index_select", b.grad(), dim, b.input(2), skip);
        return grads;
    });
}

Tensor scatter_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src) {
    check_index_dtype("scatter_add", index);
    common_device("scatter_add", {&input, &index, &src});
    check_add("scatter_add", input, src, "src");
    const int axis = wrap_dim("scatter_add", dim, input.ndim());
    check(index.ndim() == input.ndim() && src.ndim() == input.ndim(), "scatter_add: expected index and src of rank ",
          input.ndim(), ", got ", index.shape(), " and ", src.shape());
    Tensor part = src;
    for (int i = 0; i < index.ndim(); i++) {
        check(index.shape()[i] <= src.shape()[i] && (i == axis || index.shape()[i] <= input.shape()[i]),
              "scatter_add: index: expected at most ", src.shape(), " (src) and ", input.shape(), " outside dim ", axis,
              " (input), got ", index.shape());
        if (index.shape()[i] < src.shape()[i]) part = narrow(part, i, 0, index.shape()[i]);
    }
    Tensor out = unrecorded_copy(input);
    if (index.numel() > 0) {
        check<IndexError>(out.numel() > 0, "scatter_add: expected an index into a non-empty axis, got shape ",
                          input.shape());
        scatter_elements("scatter_add", out, axis, contiguous(index), contiguous(part.view(part.layout())));
    }
    return record("scatter_add", out, {input, part, index}, keep_inputs(2), [axis](const Backward& b) -> Grads {
        Grads grads(3);
        if (b.needs(0)) grads[0] = b.grad();
        if (b.needs(1)) grads[1] = gather(b.grad(), axis, b.input(2));
        return grads;
    });
}

}  // namespace vkml

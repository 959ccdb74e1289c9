#include "vkml/ops/sort/sort.h"

#include <algorithm>
#include <bit>

#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/sort/radix.h"
#include "vkml/ops/sort/rows.h"
#include "vkml/ops/sort/sort_kernel.h"
#include "vkml/runtime/decisions.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

struct Problem {
    std::int64_t length;
    bool on_cpu;
};
constexpr Variant<Problem> kVariants[] = {
    {"rows",
     [](const Problem& p, const Limits&) -> const char* {
         return p.on_cpu || p.length <= kLongestRow ? nullptr : "rows longer than 1024 exceed one workgroup";
     }},
    {"radix", never<Problem>},
};

/// Sorts everything by key and then, stably, by row: what is left is each row in order.
void sort_by_radix(const Tensor& input, const Tensor& indices, SortArgs args, bool descending) {
    Stream& on = stream_of(input);
    const bool wide = itemsize(input.dtype()) == 8;
    const std::int64_t count = std::int64_t{args.rows} * args.length;
    KeyedPairs pairs{empty({count}, wide ? DType::i64 : DType::i32, input.device()),
                     empty({count}, DType::i32, input.device())};
    const Grid grid = linear_grid(ceil_div(static_cast<std::uint64_t>(count), kThreads));
    const Spec spec{kThreads, descending ? 1u : 0u, 2};
    args.keys = pairs.keys.address();
    args.positions = pairs.values.address();
    on.launch(sort_keys_kernel, input.dtype(), spec, grid, args, {input}, {pairs.keys, pairs.values});
    // Keys of 8 and 16 bits, inverted, have ones above, which all keys share.
    pairs = sort_pairs(pairs, 0, static_cast<int>(itemsize(input.dtype())) * 8);
    if (args.rows > 1) {
        const Tensor rows = empty({count}, DType::i32, input.device());
        args.keys = rows.address();
        args.positions = pairs.values.address();
        on.launch(sort_row_numbers_kernel, DType::none, spec, grid, args, {pairs.values}, {rows});
        pairs = sort_pairs({rows, pairs.values}, 0, std::bit_width(args.rows - 1));
    }
    args.positions = pairs.values.address();
    on.launch(sort_indices_kernel, DType::none, spec, grid, args, {pairs.values}, {indices});
}

}  // namespace

Tensor argsort(const Tensor& input, std::int64_t dim, bool descending) {
    const int axis = wrap_dim("sort", dim, input.ndim());
    Tensor indices = empty(input.shape(), DType::i64, input.device());
    if (input.numel() == 0) return indices;
    check(input.numel() < (std::int64_t{1} << 31), "sort: expected fewer than 2^31 elements, got ", input.numel());
    Tensor from = input.view(input.layout());
    if (input.ndim() == 0) from = reshape(from, {1});
    Rows rows;
    if (!as_rows(from, axis, rows)) {
        from = contiguous(from);
        as_rows(from, axis, rows);
    }
    const SortArgs args{.input = from.address(),
                        .indices = indices.address(),
                        .keys = 0,
                        .positions = 0,
                        .outer_stride = rows.outer_stride,
                        .row_stride = rows.row_stride,
                        .inner_stride = rows.inner_stride,
                        .rows = static_cast<std::uint32_t>(rows.outer * rows.inner),
                        .length = static_cast<std::uint32_t>(rows.length),
                        .inners = static_cast<std::uint32_t>(rows.inner)};
    Stream& on = stream_of(input);
    if (choose("sort.rows", "sort", kVariants, Problem{rows.length, on.device().is_cpu()}, on.limits()) == 0) {
        const auto padded = static_cast<std::uint32_t>(std::bit_ceil(static_cast<std::uint64_t>(rows.length)));
        const Spec spec{kThreads, descending ? 1u : 0u,
                        std::max(2u, std::min(padded, static_cast<std::uint32_t>(kLongestRow)))};
        on.launch(sort_rows_kernel, input.dtype(), spec, linear_grid(args.rows), args, {from}, {indices});
    } else {
        sort_by_radix(from, indices, args, descending);
    }
    return indices;
}

Sorted sort(const Tensor& input, std::int64_t dim, bool descending) {
    const int axis = wrap_dim("sort", dim, input.ndim());
    const Tensor indices = argsort(input, axis, descending);
    return {gather(input, axis, indices), indices};
}

Sorted topk(const Tensor& input, std::int64_t k, std::int64_t dim, bool largest) {
    const int axis = wrap_dim("topk", dim, input.ndim());
    const std::int64_t extent = input.ndim() ? input.shape()[axis] : 1;
    check(k >= 0 && k <= extent, "topk: k: expected 0 to ", extent, ", got ", k);
    Tensor indices = argsort(input, axis, largest);
    if (input.ndim() > 0)
        indices = contiguous(narrow(indices, axis, 0, k));
    else if (k == 0)
        indices = empty({0}, DType::i64, input.device());
    return {gather(input, axis, indices), indices};
}

}  // namespace vkml

#include "vkml/ops/index/index.h"

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/elementwise/elementwise.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/ops/index/index_kernels.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

void check_rank_one(std::string_view op, const Tensor& index) {
    check_index_dtype(op, index);
    check(index.ndim() <= 1, op, ": index: expected rank 0 or 1, got ", index.shape());
}

/// A rank-0 tensor indexes as one of a single element.
Tensor at_least_1d(const Tensor& t) { return t.ndim() == 0 ? reshape(t, {1}) : t; }

}  // namespace

Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index) {
    check_rank_one("index_select", index);
    common_device("index_select", {&input, &index});
    const int axis = wrap_dim("index_select", dim, input.ndim());
    if (input.ndim() == 0)
        return reshape(select_rows("index_select", reshape(input, {1}), 0, at_least_1d(index), kNoSkip), {});
    return select_rows("index_select", input, axis, at_least_1d(index), kNoSkip);
}

Tensor scatter_add(const Tensor& src, std::int64_t axis, const Tensor& index, std::int64_t size) {
    check_rank_one("scatter_add", index);
    common_device("scatter_add", {&src, &index});
    check(size >= 0, "scatter_add: dim_size: expected a size >= 0, got ", size);
    const Tensor from = at_least_1d(src), places = at_least_1d(index);
    const int dim = wrap_dim("scatter_add", axis, src.ndim());
    check(places.numel() == from.shape()[dim], "scatter_add: index: expected shape (", from.shape()[dim], ",), got ",
          index.shape());
    Shape shape = from.shape();
    shape[dim] = size;
    return add_rows("scatter_add", zeros(shape, src.dtype(), src.device()), dim, places, from, kNoSkip, true);
}

Tensor index_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
    check_rank_one("index_add", index);
    common_device("index_add", {&input, &index, &source});
    const int axis = wrap_dim("index_add", dim, input.ndim());
    check<DTypeError>(input.dtype() == source.dtype(), "index_add: source: expected ", input.dtype(), ", got ",
                      source.dtype());
    const Tensor base = at_least_1d(input), places = at_least_1d(index);
    const Tensor from = at_least_1d(alpha.floating == 1 ? source : mul(source, alpha));
    Shape expected = base.shape();
    expected[axis] = places.numel();
    check(from.shape() == expected, "index_add: source: expected shape ", expected, ", got ", source.shape());
    const Tensor out = add_rows("index_add", base, axis, places, from, kNoSkip);
    return input.ndim() == 0 ? reshape(out, {}) : out;
}

Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<std::int64_t> padding_idx) {
    check_index_dtype("embedding", index);
    common_device("embedding", {&weight, &index});
    check(weight.ndim() == 2, "embedding: weight: expected rank 2, got ", weight.shape());
    const std::int64_t rows = weight.shape()[0];
    std::int64_t skip = kNoSkip;
    if (padding_idx) {
        check(*padding_idx >= -rows && *padding_idx < rows, "embedding: padding_idx: expected an index in [", -rows,
              ", ", rows, "), got ", *padding_idx);
        skip = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    }
    const Tensor flat = reshape(index, {-1});
    Shape shape = index.shape();
    shape.push_back(weight.shape()[1]);
    // The lookup itself knows no padding: only its gradient leaves that row out.
    const Tensor out = [&] {
        GradMode off(false);
        return select_rows("embedding", weight, 0, flat, kNoSkip);
    }();
    const Tensor recorded = record(
        "embedding", out, {weight, flat}, keep_inputs(1), [skip, shape = weight.shape()](const Backward& b) -> Grads {
            const Tensor& g = b.grad();
            return {add_rows("embedding", zeros(shape, g.dtype(), g.device()), 0, b.input(1), g, skip, true), Tensor{}};
        });
    return reshape(recorded, shape);
}

}  // namespace vkml

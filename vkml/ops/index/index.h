#pragma once
#include <optional>
#include <span>
#include <vector>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// Reading and adding at places that tensors hold. Index tensors are int64 or int32 and do not wrap; only index_get and
/// index_put, which stand behind x[...], do. A value out of range throws IndexError at the latest at the next host
/// read; the kernels touch no memory for it. Repeated places add in ascending source order, with the same bits on every
/// device.
namespace vkml {

/// out[i, j, k] = input[i, index[i, j, k], k] for dim = 1. index has input's rank; elsewhere it may be smaller.
Tensor gather(const Tensor& input, std::int64_t dim, const Tensor& index);
/// The rows of `input` along dim that a rank-1 (or rank-0) index names.
Tensor index_select(const Tensor& input, std::int64_t dim, const Tensor& index);
/// Adjoint of gather: a copy of `input` with src[i, j, k] added at [i, index[i, j, k], k].
Tensor scatter_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& src);
/// Zeros with `size` rows along `axis`, and the rows of src added at a rank-1 index.
Tensor scatter_add(const Tensor& src, std::int64_t axis, const Tensor& index, std::int64_t size);
/// A copy of `input` with the rows of alpha * source added at a rank-1 index.
Tensor index_add(const Tensor& input, std::int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha = 1);
/// Rows of a (rows, width) weight, for an index of any shape. Row padding_idx gets no gradient.
Tensor embedding(const Tensor& weight, const Tensor& index, std::optional<std::int64_t> padding_idx = {});

/// The indices of the non-zero elements, (count, rank) int64 in row-major order. Waits for the device.
Tensor nonzero(const Tensor& input);
/// The elements under a true mask, rank 1; the two broadcast. Waits for the device.
Tensor masked_select(const Tensor& input, const Tensor& mask);

/// input[indices]: one entry per axis from the first; an undefined one takes the whole axis. Indices broadcast, wrap,
/// and may be bool masks, which stand for as many axes as they have. The indexed axes are replaced where they are
/// adjacent, else moved first.
Tensor index_get(const Tensor& input, std::span<const Tensor> indices);
/// input[indices] = value in place; value broadcasts and has the input's dtype. Of repeated places the last one wins.
/// Recorded: `input` becomes a result of this write. Throws Error on a leaf that requires grad.
void index_put(const Tensor& input, std::span<const Tensor> indices, const Tensor& value);

}  // namespace vkml

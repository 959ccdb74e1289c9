#pragma once
#include <span>
#include <vector>

#include "vkml/core/tensor.h"

/// Joining and splitting along one axis.
namespace vkml {

/// The tensors one after the other along dim, in the dtype they promote to. One allocation, each input copied once.
/// Shapes agree on the other axes; a tensor of shape (0,) joins anything. Throws ShapeError for an empty list or rank
/// 0.
Tensor cat(std::span<const Tensor> tensors, std::int64_t dim = 0);
/// cat along a new axis. All shapes are equal.
Tensor stack(std::span<const Tensor> tensors, std::int64_t dim = 0);
/// Views of `size` elements each along dim, the last one possibly smaller.
std::vector<Tensor> split(const Tensor& input, std::int64_t size, std::int64_t dim = 0);
/// Views of the given sizes, which add up to the extent.
std::vector<Tensor> split(const Tensor& input, std::span<const std::int64_t> sizes, std::int64_t dim = 0);
/// At most `chunks` views of ceil(extent / chunks) elements.
std::vector<Tensor> chunk(const Tensor& input, std::int64_t chunks, std::int64_t dim = 0);

}  // namespace vkml

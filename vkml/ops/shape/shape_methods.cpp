#include "vkml/ops/shape/shape.h"

namespace vkml {

Tensor Tensor::reshape(const Shape& shape) const { return vkml::reshape(*this, shape); }
Tensor Tensor::permute(const Dims& axes) const { return vkml::permute(*this, axes); }
Tensor Tensor::transpose(std::int64_t a, std::int64_t b) const { return vkml::transpose(*this, a, b); }
Tensor Tensor::expand(const Shape& shape) const { return vkml::expand(*this, shape); }
Tensor Tensor::unsqueeze(std::int64_t dim) const { return vkml::unsqueeze(*this, dim); }
Tensor Tensor::flatten(std::int64_t start, std::int64_t end) const { return vkml::flatten(*this, start, end); }
Tensor Tensor::detach() const { return vkml::detach(*this); }

}  // namespace vkml

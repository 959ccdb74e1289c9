#pragma once
#include "vkml/ops/cast/cast.h"
#include "vkml/ops/reduce/structure.h"
#include "vkml/ops/shape/shape.h"

namespace vkml {

/// A reduction's result or its gradient, read as if the reduced axes were still there. Differentiable.
inline Tensor spread(const Tensor& reduced, const Shape& shape, const Dims& axes) {
    return expand(reshape(reduced, reduced_shape(shape, axes, true)), shape);
}

/// 16-bit floats as f32, so that a gradient of several steps rounds once.
inline Tensor widened(const Tensor& x) { return cast(x, accumulator(x.dtype())); }

}  // namespace vkml

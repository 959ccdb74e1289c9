#pragma once
#include <optional>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// Evenly spaced numbers. Integers are exact to 64 bits; floats are computed in f64 and rounded once.
namespace vkml {

/// start, start + step, ... before stop. Without a dtype: int64 if all three are integers, else the default float.
/// Throws ShapeError if step is 0 or leads away from stop, or a number is not finite.
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<DType> dtype, Device device);
/// `steps` numbers from start to stop, both included; the second half counts down from stop, so both ends are exact.
Tensor linspace(const Scalar& start, const Scalar& stop, std::int64_t steps, DType dtype, Device device);
/// Ones on the diagonal of an (n, m) matrix, zeros elsewhere.
Tensor eye(std::int64_t n, std::int64_t m, DType dtype, Device device);

}  // namespace vkml

#pragma once
#include <optional>

#include "vkml/core/tensor.h"
#include "vkml/ops/elementwise/arg.h"

/// Picks and limits, element by element, with broadcasting.
namespace vkml {

/// x where cond, else y: a pick, so a NaN on the other side does not matter. x and y promote, and either may be a
/// number. Throws DTypeError unless cond is bool.
Tensor where(const Tensor& cond, const Arg& x, const Arg& y);
/// x with `value`, in x's dtype, where the mask is true; the mask broadcasts to x. Throws DTypeError unless it is bool.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Arg& value);

/// x held between min and max; NaN in x or in a bound gives NaN; max wins where they cross. A missing bound does not
/// bind; none at all: ShapeError. The gradient is 1 inside and on the bounds.
Tensor clamp(const Tensor& x, const std::optional<Arg>& min, const std::optional<Arg>& max = {});
Tensor clamp_min(const Tensor& x, const Arg& min);
Tensor clamp_max(const Tensor& x, const Arg& max);

const Tensor& clamp_(const Tensor& target, const std::optional<Arg>& min, const std::optional<Arg>& max = {});
const Tensor& clamp_min_(const Tensor& target, const Arg& min);
const Tensor& clamp_max_(const Tensor& target, const Arg& max);
const Tensor& masked_fill_(const Tensor& target, const Tensor& mask, const Arg& value);

}  // namespace vkml

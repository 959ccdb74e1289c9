#pragma once
#include "vkml/core/tensor.h"

namespace vkml {

struct Unique {
    Tensor values;   // rank 1, ascending; every NaN is a value of its own
    Tensor inverse;  // int64, of the input's shape: which value each element is
    Tensor counts;   // int64
};

/// The distinct elements. Waits for the device, whose answer decides the shape.
Unique unique(const Tensor& input);

}  // namespace vkml

#pragma once
#include "bind.h"

namespace vkml::python {

/// t[key]: ints, slices, None and Ellipsis give a view; masks and integer arrays, lists or tensors among them a copy.
Tensor subscript(const Tensor& t, nb::handle key);
/// t[key] = value, a tensor, a number or anything NumPy reads.
void assign_subscript(const Tensor& t, nb::handle key, nb::handle value);

}  // namespace vkml::python

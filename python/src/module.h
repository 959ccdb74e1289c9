#pragma once
#include "bind.h"

/// The parts of the module that are no operators, in the order they are bound.
namespace vkml::python {

void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);  // dtype, device
void bind_tensor(nb::module_& m, TensorClass& tensor);
void bind_runtime(nb::module_& m);  // devices, memory, decisions, captures
void bind_autograd(nb::module_& m, TensorClass& tensor);

}  // namespace vkml::python

#include "module.h"
#include "vkml/autograd/engine.h"

namespace vkml::python {

void bind_autograd(nb::module_& m, TensorClass& tensor) {
    m.def("is_grad_enabled", &grad_enabled);
    m.def("_set_grad_enabled", &set_grad_enabled);
    tensor.def_prop_ro("requires_grad", &Tensor::requires_grad);
}

}  // namespace vkml::python

#include <vector>

#include "bind.h"
#include "module.h"

namespace vkml::python {
namespace {

std::vector<BindFunction>& bindings() {
    static std::vector<BindFunction> list;
    return list;
}

}  // namespace

Binding::Binding(BindFunction bind) { bindings().push_back(bind); }

}  // namespace vkml::python

NB_MODULE(_core, m) {
    using namespace vkml::python;
    // Tensors that are alive at exit are no leak: the process's devices outlive the interpreter.
    nanobind::set_leak_warnings(false);
    bind_errors(m);
    bind_types(m);
    TensorClass tensor(m, "Tensor", nb::type_slots(buffer_slots()),
                       "A view of device memory: shape, strides, dtype and device never change, the values may.");
    bind_tensor(m, tensor);
    bind_conversions(m, tensor);
    bind_interop(m, tensor);
    bind_runtime(m);
    bind_autograd(m, tensor);
    for (BindFunction bind : bindings()) bind(m, tensor);
    bind_calls(m);
}

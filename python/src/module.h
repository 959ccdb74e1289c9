#pragma once
#include <memory>

#include "bind.h"

/// The parts of the module that are no operators, in the order they are bound.
namespace vkml::python {

void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);  // dtype, device
void bind_tensor(nb::module_& m, TensorClass& tensor);
void bind_conversions(nb::module_& m, TensorClass& tensor);  // numbers, devices, dtypes, writing in place
void bind_interop(nb::module_& m, TensorClass& tensor);      // host memory, DLPack
/// The type slots of Tensor that nanobind has no words for.
const PyType_Slot* buffer_slots();
void bind_runtime(nb::module_& m);  // devices, memory, decisions, captures
void bind_autograd(nb::module_& m, TensorClass& tensor);
void bind_calls(nb::module_& m);  // after everything else: says in vkML's words which argument does not fit

/// A method whose body is the Python function `name` of vkml/_tensor.py; declared here so that class and stub show it.
inline auto in_python(const char* name) {
    return [name](nb::handle self, const nb::args& args, const nb::kwargs& kwargs) -> nb::object {
        return nb::module_::import_("vkml._tensor").attr(name)(self, *args, **kwargs);
    };
}

/// A Python object that C++ may drop on any thread, and after the interpreter has ended.
using Held = std::shared_ptr<PyObject>;
inline Held hold(nb::handle h) {
    return Held(h.inc_ref().ptr(), [](PyObject* object) {
        if (!Py_IsInitialized()) return;
        nb::gil_scoped_acquire gil;
        Py_DECREF(object);
    });
}

}  // namespace vkml::python

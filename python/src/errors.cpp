#include "module.h"

namespace vkml::python {
namespace {

PyObject* g_error = nullptr;

/// A Python exception that is a vkml.Error and the builtin a user would catch.
template <class E>
void bind_error(nb::module_& m, const char* name, PyObject* builtin, const char* doc) {
    static PyObject* type = nullptr;
    nb::object bases = nb::make_tuple(nb::handle(g_error), nb::handle(builtin));
    const std::string qualified = std::string("vkml.") + name;
    type = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases.ptr(), nullptr);
    m.attr(name) = nb::handle(type);
    nb::register_exception_translator(
        [](const std::exception_ptr& p, void*) {
            try {
                std::rethrow_exception(p);
            } catch (const E& e) {
                PyErr_SetString(type, e.what());
            }
        },
        nullptr);
}

}  // namespace

void bind_errors(nb::module_& m) {
    g_error = PyErr_NewExceptionWithDoc("vkml.Error", "Base of every error vkML raises.", PyExc_RuntimeError, nullptr);
    m.attr("Error") = nb::handle(g_error);
    // Translators are asked newest first, so the base comes before its classes here.
    nb::register_exception_translator(
        [](const std::exception_ptr& p, void*) {
            try {
                std::rethrow_exception(p);
            } catch (const Error& e) {
                PyErr_SetString(g_error, e.what());
            }
        },
        nullptr);
    bind_error<ShapeError>(m, "ShapeError", PyExc_ValueError, "Rank, size, or any other illegal argument value.");
    bind_error<DTypeError>(
        m, "DTypeError", PyExc_TypeError,
        "A dtype the operator does not take, dtypes that must be equal, or an argument of the wrong kind.");
    bind_error<IndexError>(m, "IndexError_", PyExc_IndexError, "Axis or index out of range.");
    bind_error<DeviceError>(m, "DeviceError", PyExc_RuntimeError,
                            "Tensors on different devices, or a device missing or lost.");
    bind_error<NotImplementedError>(m, "NotImplementedError_", PyExc_NotImplementedError, "No kernel on this device.");
    bind_error<OutOfMemoryError>(m, "OutOfMemoryError", PyExc_MemoryError, "Names the bytes asked for and the limit.");
}

}  // namespace vkml::python

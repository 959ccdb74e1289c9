#include <utility>

#include "module.h"

/// nanobind answers a call whose arguments fit no overload with a TypeError full of C++ signatures, and readers of
/// shapes, dtypes and devices know no operator. Both become vkML's words here: every bound function gets a dispatcher
/// that looks at the error, and costs one indirect call where there is none.
namespace vkml::python {

PyObject*& refused_argument() {
    static thread_local PyObject* refused = nullptr;
    return refused;
}

namespace {

/// nanobind marks a `self` it has just made with this bit of the argument count.
constexpr std::size_t kTrustedSelf = PY_VECTORCALL_ARGUMENTS_OFFSET >> 1;

/// No overload fits, or a conversion inside the function failed.
bool speaks_of_arguments(nb::handle type, std::string_view text) {
    if (type.is(nb::handle(PyExc_TypeError))) return text.find("(): incompatible function arguments") != text.npos;
    return type.is(nb::handle(PyExc_RuntimeError)) && text == "std::bad_cast";
}

/// What a keyword of NumPy's is called here, as PyTorch takes it too; null for any other.
PyObject* dim_name(PyObject* keyword) {
    static PyObject* const dim = PyUnicode_InternFromString("dim");
    static PyObject* const keepdim = PyUnicode_InternFromString("keepdim");
    const Py_ssize_t length = PyUnicode_GET_LENGTH(keyword);
    if (length == 4 && PyUnicode_CompareWithASCIIString(keyword, "axis") == 0) return dim;
    if (length == 8 && PyUnicode_CompareWithASCIIString(keyword, "keepdims") == 0) return keepdim;
    return nullptr;
}

/// The keywords of a call with `axis` as `dim` and `keepdims` as `keepdim`; null where it has neither, or has both.
nb::object with_dim_names(PyObject* keywords) {
    const Py_ssize_t count = PyTuple_GET_SIZE(keywords);
    bool any = false;
    for (Py_ssize_t i = 0; i < count; i++) any |= dim_name(PyTuple_GET_ITEM(keywords, i)) != nullptr;
    if (!any) return {};
    nb::list renamed;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
        PyObject* other = dim_name(keyword);
        if (other && nb::handle(keywords).attr("__contains__")(nb::handle(other)).is(nb::handle(Py_True))) return {};
        renamed.append(nb::handle(other ? other : keyword));
    }
    return nb::tuple(renamed);
}

/// Replaces the error that is set, if it speaks of the arguments.
void explain(PyObject* function, PyObject* const* args, std::size_t nargsf, PyObject* names) noexcept {
    const nb::handle refused(std::exchange(refused_argument(), nullptr));
    if (!PyErr_Occurred()) return;
    nb::python_error error;  // takes the error over
    try {
        const nb::str text(error.value());
        if (refused.is_valid() || speaks_of_arguments(error.type(), text.c_str())) {
            const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)) & ~kTrustedSelf;
            nb::list positional;
            nb::dict named;
            for (std::size_t i = 0; i < count; i++) positional.append(nb::handle(args[i]));
            for (std::size_t i = 0; names && i < static_cast<std::size_t>(PyTuple_GET_SIZE(names)); i++)
                named[nb::handle(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)))] = nb::handle(args[count + i]);
            const bool named_it = refused.is_valid();
            const nb::object words =
                nb::module_::import_("vkml._calls")
                    .attr(named_it ? "name_argument" : "explain")(nb::handle(function), positional, named,
                                                                  named_it ? nb::borrow(refused) : nb::none(), text);
            const nb::object type =
                named_it ? nb::borrow(error.type()) : nb::object(nb::module_::import_("vkml._core").attr("DTypeError"));
            PyErr_SetObject(type.ptr(), words.ptr());
            return;
        }
    } catch (...) {  // then the first error is still the better one
        PyErr_Clear();
    }
    error.restore();
}

// nanobind has a handful of dispatchers, so that each gets its own wrapper and no call looks anything up.
constexpr std::size_t kDispatchers = 8;
vectorcallfunc g_dispatchers[kDispatchers];

/// The call with `axis` and `keepdims` renamed. Null and no error if the function has no such arguments, so that it may
/// still have an `axis` of its own.
PyObject* call_renamed(vectorcallfunc dispatcher, PyObject* self, PyObject* const* args, std::size_t nargsf,
                       nb::handle names) {
    PyObject* result = dispatcher(self, args, nargsf, names.ptr());
    if (result || refused_argument()) return result;
    nb::python_error error;
    if (!speaks_of_arguments(error.type(), nb::str(error.value()).c_str())) error.restore();
    return nullptr;
}

template <std::size_t I>
PyObject* explained(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* names) {
    PyObject* result = nullptr;
    if (const nb::object renamed = names ? with_dim_names(names) : nb::object(); renamed.is_valid()) [[unlikely]]
        result = call_renamed(g_dispatchers[I], self, args, nargsf, renamed);
    if (!result && !PyErr_Occurred()) result = g_dispatchers[I](self, args, nargsf, names);
    if (!result) [[unlikely]]
        explain(self, args, nargsf, names);
    return result;
}

template <std::size_t... I>
vectorcallfunc wrapper(vectorcallfunc dispatcher, std::index_sequence<I...>) {
    static constexpr vectorcallfunc wrappers[] = {&explained<I>...};
    for (std::size_t i = 0; i < kDispatchers; i++) {
        if (dispatcher == wrappers[i]) return dispatcher;
        if (!g_dispatchers[i]) g_dispatchers[i] = dispatcher;
        if (g_dispatchers[i] == dispatcher) return wrappers[i];
    }
    return dispatcher;
}

void wrap(nb::handle function) {
    PyTypeObject* type = Py_TYPE(function.ptr());
    const std::string_view kind = type->tp_name;
    if (!kind.ends_with("nb_func") && !kind.ends_with("nb_method")) return;
    auto* slot =
        reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) + type->tp_vectorcall_offset);
    *slot = wrapper(*slot, std::make_index_sequence<kDispatchers>());
}

void wrap_all(nb::handle owner) {
    for (nb::handle value : owner.attr("__dict__").attr("values")()) wrap(value);
}

}  // namespace

void bind_calls(nb::module_& m) {
    wrap_all(m);
    for (nb::handle value : m.attr("__dict__").attr("values")())
        if (PyType_Check(value.ptr())) wrap_all(value);
}

}  // namespace vkml::python

#include "casters.h"

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace vkml::python {
namespace {

constexpr DType kAll[] = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                          DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};

bool dtype_named(std::string_view text, DType& out) {
    if (text == "bool_") text = "bool";
    for (DType d : kAll)
        if (name(d) == text) {
            out = d;
            return true;
        }
    return false;
}

}  // namespace

DType to_dtype(nb::handle h) {
    DType out = DType::none;
    if (nb::isinstance<PyDType>(h)) return nb::inst_ptr<PyDType>(h)->value;
    if (nb::isinstance<nb::str>(h) && dtype_named(nb::cast<std::string>(h), out)) return out;
    if (h.is(nb::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)))) return default_dtype();
    if (h.is(nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)))) return DType::i64;
    if (h.is(nb::handle(reinterpret_cast<PyObject*>(&PyBool_Type)))) return DType::boolean;
    // NumPy dtypes have a name; NumPy scalar types (np.float32, ml_dtypes.bfloat16) are classes called like one.
    for (const char* attribute : {"name", "__name__"})
        if (nb::hasattr(h, attribute)) {
            nb::object text = h.attr(attribute);
            if (nb::isinstance<nb::str>(text) && dtype_named(nb::cast<std::string>(text), out)) return out;
        }
    fail<DTypeError>(
        "dtype: expected one of float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool, got ",
        nb::cast<std::string>(nb::repr(h)));
}

nb::object from_dtype(DType d) { return nb::cast(PyDType{d}); }

Device to_device_spec(nb::handle h) {
    if (nb::isinstance<PyDevice>(h)) return nb::inst_ptr<PyDevice>(h)->value;
    if (nb::isinstance<nb::str>(h)) return parse_device(nb::cast<std::string>(h));
    if (nb::isinstance<Tensor>(h)) return nb::cast<const Tensor&>(h).device();
    fail<DeviceError>("device: expected \"cpu\", \"vulkan\" (a GPU of any make) or \"vulkan:N\", got ",
                      nb::cast<std::string>(nb::repr(h)));
}

Dims to_dims(nb::handle h) {
    const auto integer = [h](nb::object index) {
        if (!index.is_valid()) {
            PyErr_Clear();
            fail<DTypeError>("shape: expected an int or a sequence of ints, got ", nb::cast<std::string>(nb::repr(h)));
        }
        const long long value = PyLong_AsLongLong(index.ptr());
        if (value == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            fail<ShapeError>("shape: expected integers of 64 bits, got ", nb::cast<std::string>(nb::repr(index)));
        }
        return static_cast<std::int64_t>(value);
    };
    Dims out;
    const bool sequence =
        PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()) || (PySequence_Check(h.ptr()) && !PyUnicode_Check(h.ptr()));
    const Py_ssize_t n = sequence ? PySequence_Size(h.ptr()) : -1;
    if (n < 0) {
        PyErr_Clear();
        out.push_back(integer(nb::steal(PyNumber_Index(h.ptr()))));
        return out;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const nb::object item = nb::steal(PySequence_GetItem(h.ptr(), i));
        out.push_back(integer(item.is_valid() ? nb::steal(PyNumber_Index(item.ptr())) : nb::object()));
    }
    return out;
}

Dims dims_from(std::string_view op, const nb::args& args) {
    const bool one = args.size() == 1;
    try {
        return to_dims(one ? nb::object(args[0]) : nb::object(args));
    } catch (const DTypeError&) {
        fail<DTypeError>(op, ": expected ints or a sequence of ints, got ",
                         nb::cast<std::string>(nb::repr(one ? nb::object(args[0]) : nb::object(args))));
    }
}

bool to_scalar(nb::handle h, Scalar& out) {
    if (PyBool_Check(h.ptr())) {
        out = Scalar(h.ptr() == Py_True);
        return true;
    }
    if (PyFloat_Check(h.ptr())) {  // np.float64 is one
        out = Scalar(PyFloat_AS_DOUBLE(h.ptr()));
        return true;
    }
    if (PyLong_Check(h.ptr())) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(h.ptr(), &overflow);
        if (overflow)
            out = Scalar(PyLong_AsDouble(h.ptr()));
        else
            out = Scalar(static_cast<std::int64_t>(value));
        PyErr_Clear();
        return true;
    }
    // Other NumPy scalars: np.float32(1), np.int64(2), np.bool_(True).
    if (nb::isinstance<Tensor>(h) || !nb::hasattr(h, "dtype") || !nb::hasattr(h, "item") || !nb::hasattr(h, "ndim"))
        return false;
    if (nb::cast<int>(h.attr("ndim")) != 0) return false;
    return to_scalar(h.attr("item")(), out);
}

}  // namespace vkml::python

namespace nanobind::detail {

handle type_caster<vkml::Dims>::from_cpp(const vkml::Dims& dims, rv_policy, cleanup_list*) noexcept {
    PyObject* tuple = PyTuple_New(dims.size());
    for (int i = 0; tuple && i < dims.size(); i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(dims[i]));
    return tuple;
}

handle type_caster<vkml::DType>::from_cpp(vkml::DType d, rv_policy, cleanup_list*) noexcept {
    try {
        return vkml::python::from_dtype(d).release();
    } catch (...) {
        return {};
    }
}

handle type_caster<vkml::Device>::from_cpp(vkml::Device d, rv_policy, cleanup_list*) noexcept {
    try {
        return nb::cast(vkml::python::PyDevice{d}).release();
    } catch (...) {
        return {};
    }
}

bool type_caster<vkml::Scalar>::from_python(handle src, std::uint32_t, cleanup_list*) noexcept {
    try {
        return vkml::python::to_scalar(src, value);
    } catch (...) {
        PyErr_Clear();
        return false;
    }
}

handle type_caster<vkml::Scalar>::from_cpp(const vkml::Scalar& s, rv_policy, cleanup_list*) noexcept {
    switch (s.kind) {
        case vkml::Scalar::Kind::boolean:
            return PyBool_FromLong(s.integer != 0);
        case vkml::Scalar::Kind::integer:
            return PyLong_FromLongLong(s.integer);
        default:
            return PyFloat_FromDouble(s.floating);
    }
}

bool type_caster<vkml::Operand>::from_python(handle src, std::uint32_t, cleanup_list*) noexcept {
    try {
        if (vkml::python::to_scalar(src, value.scalar)) return true;
        vkml::Tensor* tensor = nullptr;
        if (nb::try_cast<vkml::Tensor*>(src, tensor) && tensor) {
            value.tensor = *tensor;
            return true;
        }
        if (!nb::hasattr(src, "__array_interface__")) return false;
        const nb::object made = nb::module_::import_("vkml._tensor").attr("operand")(src);  // a NumPy array, on the CPU
        value.tensor = nb::cast<const vkml::Tensor&>(made);
        return true;
    } catch (...) {
        PyErr_Clear();
        return false;
    }
}

}  // namespace nanobind::detail

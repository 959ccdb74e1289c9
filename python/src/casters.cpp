#include "casters.h"

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace vkml::python {
namespace {

constexpr DType kAll[] = {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64};

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
    if (nb::isinstance<PyDType>(h)) return nb::cast<PyDType>(h).value;
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
    fail<DTypeError>("dtype: expected one of float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool, got ",
                     nb::cast<std::string>(nb::repr(h)));
}

nb::object from_dtype(DType d) { return nb::cast(PyDType{d}); }

Device to_device_spec(nb::handle h) {
    if (nb::isinstance<Device>(h)) return nb::cast<Device>(h);
    if (nb::isinstance<nb::str>(h)) return parse_device(nb::cast<std::string>(h));
    fail<DeviceError>("device: expected \"cpu\", \"vulkan\" or \"vulkan:N\", got ", nb::cast<std::string>(nb::repr(h)));
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
        if (overflow) out = Scalar(PyLong_AsDouble(h.ptr()));
        else out = Scalar(static_cast<std::int64_t>(value));
        PyErr_Clear();
        return true;
    }
    // Other NumPy scalars: np.float32(1), np.int64(2), np.bool_(True).
    if (nb::isinstance<Tensor>(h) || !nb::hasattr(h, "dtype") || !nb::hasattr(h, "item") || !nb::hasattr(h, "ndim")) return false;
    if (nb::cast<int>(h.attr("ndim")) != 0) return false;
    return to_scalar(h.attr("item")(), out);
}

}  // namespace vkml::python

namespace nanobind::detail {

bool type_caster<vkml::Dims>::from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
        vkml::Dims out;
        if (PyLong_Check(src.ptr())) {
            out.push_back(nb::cast<int64_t>(src));
        } else if (PyList_Check(src.ptr()) || PyTuple_Check(src.ptr()) || (PySequence_Check(src.ptr()) && !PyUnicode_Check(src.ptr()))) {
            const Py_ssize_t n = PySequence_Size(src.ptr());
            if (n < 0) {
                PyErr_Clear();
                return false;
            }
            for (Py_ssize_t i = 0; i < n; i++) {
                object item = steal(PySequence_GetItem(src.ptr(), i));
                if (!item.is_valid()) {
                    PyErr_Clear();
                    return false;
                }
                object index = steal(PyNumber_Index(item.ptr()));
                if (!index.is_valid()) {
                    PyErr_Clear();
                    return false;
                }
                // Rank above 8 is reported by whoever uses the list: here it just does not convert.
                if (out.size() == vkml::kMaxRank) return false;
                out.push_back(nb::cast<int64_t>(index));
            }
        } else {
            object index = steal(PyNumber_Index(src.ptr()));
            if (!index.is_valid()) {
                PyErr_Clear();
                return false;
            }
            out.push_back(nb::cast<int64_t>(index));
        }
        value = out;
        return true;
    } catch (...) {
        PyErr_Clear();
        return false;
    }
}

handle type_caster<vkml::Dims>::from_cpp(const vkml::Dims& dims, rv_policy, cleanup_list*) noexcept {
    PyObject* tuple = PyTuple_New(dims.size());
    for (int i = 0; tuple && i < dims.size(); i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(dims[i]));
    return tuple;
}

bool type_caster<vkml::DType>::from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
        value = vkml::python::to_dtype(src);
        return true;
    } catch (...) {
        PyErr_Clear();
        return false;
    }
}

handle type_caster<vkml::DType>::from_cpp(vkml::DType d, rv_policy, cleanup_list*) noexcept {
    try {
        return vkml::python::from_dtype(d).release();
    } catch (...) {
        return {};
    }
}

handle type_caster<vkml::Scalar>::from_cpp(const vkml::Scalar& s, rv_policy, cleanup_list*) noexcept {
    switch (s.kind) {
        case vkml::Scalar::Kind::boolean: return PyBool_FromLong(s.integer != 0);
        case vkml::Scalar::Kind::integer: return PyLong_FromLongLong(s.integer);
        default: return PyFloat_FromDouble(s.floating);
    }
}

bool type_caster<vkml::Operand>::from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
        if (vkml::python::to_scalar(src, value.scalar)) return true;
        vkml::Tensor* tensor = nullptr;
        if (!nb::try_cast<vkml::Tensor*>(src, tensor) || !tensor) return false;
        value.tensor = *tensor;
        return true;
    } catch (...) {
        PyErr_Clear();
        return false;
    }
}

}  // namespace nanobind::detail

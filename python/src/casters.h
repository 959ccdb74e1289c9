#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <variant>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// Conversions between Python's words and vkML's: shapes, dtypes, devices, numbers.
namespace vkml::python {

/// `vkml.dtype`, as Python sees it.
struct PyDType {
    DType value;
    friend bool operator==(PyDType, PyDType) = default;
};

/// Reads a dtype from a vkml dtype, a name, a NumPy dtype or scalar type, or float, int, bool. Throws DTypeError.
DType to_dtype(nanobind::handle h);
nanobind::object from_dtype(DType d);
/// Reads "cpu", "vulkan:0" or a device object.
Device to_device_spec(nanobind::handle h);

/// True for Python and NumPy numbers; fills `out`.
bool to_scalar(nanobind::handle h, Scalar& out);

}  // namespace vkml::python

namespace vkml {

/// A tensor or a number, as binary operators take them.
struct Operand {
    Tensor tensor;
    Scalar scalar{0.0};
    bool is_tensor() const { return tensor.defined(); }
};

}  // namespace vkml

namespace nanobind::detail {

/// Dims from an int or a sequence of ints; given back as a tuple.
template <>
struct type_caster<vkml::Dims> {
    NB_TYPE_CASTER(vkml::Dims, const_name("int | collections.abc.Sequence[int]"))
    bool from_python(handle src, uint8_t flags, cleanup_list*) noexcept;
    static handle from_cpp(const vkml::Dims& dims, rv_policy, cleanup_list*) noexcept;
};

template <>
struct type_caster<vkml::DType> {
    NB_TYPE_CASTER(vkml::DType, const_name("dtype | str | type"))
    bool from_python(handle src, uint8_t flags, cleanup_list*) noexcept;
    static handle from_cpp(vkml::DType d, rv_policy, cleanup_list*) noexcept;
};

template <>
struct type_caster<vkml::Scalar> {
    using Value = vkml::Scalar;
    static constexpr auto Name = const_name("bool | int | float");
    template <typename T>
    using Cast = vkml::Scalar;
    bool from_python(handle src, uint8_t, cleanup_list*) noexcept { return vkml::python::to_scalar(src, value); }
    static handle from_cpp(const vkml::Scalar&, rv_policy, cleanup_list*) noexcept;
    template <typename T>
    bool can_cast() const noexcept {
        return true;
    }
    explicit operator vkml::Scalar() { return value; }
    explicit operator vkml::Scalar*() { return &value; }
    explicit operator vkml::Scalar&() { return value; }

private:
    vkml::Scalar value{0.0};
};

template <>
struct type_caster<vkml::Operand> {
    NB_TYPE_CASTER(vkml::Operand, const_name("Tensor | bool | int | float"))
    bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept;
    static handle from_cpp(const vkml::Operand&, rv_policy, cleanup_list*) noexcept { return {}; }
};

}  // namespace nanobind::detail

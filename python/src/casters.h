#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

/// Conversions between Python's words and vkML's: shapes, dtypes, devices, numbers.
namespace vkml::python {

/// `vkml.dtype` and `vkml.device`, as Python sees them.
struct PyDType {
    DType value;
};
struct PyDevice {
    Device value;
};

/// Reads a dtype from a vkml dtype, a name, a NumPy dtype or scalar type, or float, int, bool. Throws DTypeError.
DType to_dtype(nanobind::handle h);
nanobind::object from_dtype(DType d);
/// Reads "cpu", "vulkan:0" or a device object. Throws DeviceError.
Device to_device_spec(nanobind::handle h);
/// Reads an int or a sequence of ints. Throws DTypeError, ShapeError where they have more than 64 bits.
Dims to_dims(nanobind::handle h);
/// The ints of `t.reshape(2, 3)`, `t.reshape((2, 3))` and `t.reshape([2, 3])`. Throws as to_dims, naming `op`.
Dims dims_from(std::string_view op, const nanobind::args& args);

/// True for Python and NumPy numbers; fills `out`.
bool to_scalar(nanobind::handle h, Scalar& out);

/// The argument that a reader has just refused on this thread, so that the error can name it (calls.cpp).
PyObject*& refused_argument();

/// Reads again what did not convert; throws.
template <class T>
void refuse(nanobind::handle h, T& out);

inline void read(nanobind::handle h, DType& out) { out = to_dtype(h); }
inline void read(nanobind::handle h, Device& out) { out = to_device_spec(h); }
inline void read(nanobind::handle h, Dims& out) { out = to_dims(h); }
template <class T>
void read(nanobind::handle h, std::optional<T>& out) {
    if (h.is_none())
        out.reset();
    else
        read(h, out.emplace());
}
template <class T>
void refuse(nanobind::handle h, T& out) {
    refused_argument() = h.ptr();
    read(h, out);
    refused_argument() = nullptr;
}

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

/// from_python may not throw and could only say "no overload fits". So what does not convert is kept, and read again
/// when the call is made, where vkML's own error reaches the user. While overloads are compared, and in nb::try_cast,
/// it says no.
template <class T>
struct late_caster {
    using Value = T;
    template <typename T_>
    using Cast = movable_cast_t<T_>;
    template <typename T_>
    static constexpr bool can_cast() {
        return true;
    }

    bool from_python(handle src, std::uint32_t flags, cleanup_list*) noexcept {
        try {
            vkml::python::read(src, value);
            return true;
        } catch (...) {
            PyErr_Clear();
            refused = src;
            return (flags & cast_flags::convert) && !(flags & cast_flags::manual);
        }
    }
    Value& get() {
        if (refused.is_valid()) vkml::python::refuse(refused, value);
        return value;
    }
    explicit operator Value*() { return &get(); }
    explicit operator Value&() { return get(); }
    explicit operator Value&&() { return std::move(get()); }

  private:
    Value value{};
    handle refused;
};

template <>
struct type_caster<vkml::Dims> : late_caster<vkml::Dims> {
    static constexpr auto Name = io_name("int | collections.abc.Sequence[int]", "tuple[int, ...]");
    static handle from_cpp(const vkml::Dims& dims, rv_policy, cleanup_list*) noexcept;
};
template <>
struct type_caster<vkml::DType> : late_caster<vkml::DType> {
    static constexpr auto Name = io_name("dtype | str | type", "dtype");
    static handle from_cpp(vkml::DType d, rv_policy, cleanup_list*) noexcept;
};
template <>
struct type_caster<vkml::Device> : late_caster<vkml::Device> {
    static constexpr auto Name = io_name("device | str", "device");
    static handle from_cpp(vkml::Device d, rv_policy, cleanup_list*) noexcept;
};
// Whole specialisations, so that they win over nanobind's std::optional.
template <>
struct type_caster<std::optional<vkml::Dims>> : late_caster<std::optional<vkml::Dims>> {
    static constexpr auto Name = const_name("int | collections.abc.Sequence[int] | None");
};
template <>
struct type_caster<std::optional<vkml::DType>> : late_caster<std::optional<vkml::DType>> {
    static constexpr auto Name = const_name("dtype | str | type | None");
};
template <>
struct type_caster<std::optional<vkml::Device>> : late_caster<std::optional<vkml::Device>> {
    static constexpr auto Name = const_name("device | str | None");
};

template <>
struct type_caster<vkml::Scalar> {
    using Value = vkml::Scalar;
    static constexpr auto Name = const_name("bool | int | float");
    template <typename T>
    using Cast = vkml::Scalar;
    bool from_python(handle src, std::uint32_t, cleanup_list*) noexcept;
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
    NB_TYPE_CASTER(vkml::Operand, const_name("Tensor | numpy.ndarray | bool | int | float"))
    bool from_python(handle src, std::uint32_t flags, cleanup_list* cleanup) noexcept;
    static handle from_cpp(const vkml::Operand&, rv_policy, cleanup_list*) noexcept { return {}; }
};

}  // namespace nanobind::detail

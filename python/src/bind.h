#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "casters.h"
#include "vkml/core/tensor.h"

/// How an operator's `<op>_py.cpp` joins the module: one VKML_PYTHON block, no central list.
namespace vkml::python {

namespace nb = nanobind;
using namespace nb::literals;

using TensorClass = nb::class_<Tensor>;
using BindFunction = void (*)(nb::module_& m, TensorClass& tensor);

/// Put at namespace scope; runs once when the module is imported, after Tensor, dtype, device and the errors exist.
struct Binding {
    explicit Binding(BindFunction bind);
};

/// Other threads run while C++ works. Operators bind with this call guard.
using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;

}  // namespace vkml::python

#define VKML_PYTHON(op)                                                                         \
    static void bind_##op(::nanobind::module_& m, ::vkml::python::TensorClass& tensor);         \
    static const ::vkml::python::Binding op##_binding(&bind_##op);                              \
    static void bind_##op([[maybe_unused]] ::nanobind::module_& m, [[maybe_unused]] ::vkml::python::TensorClass& tensor)

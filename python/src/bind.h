#pragma once
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <thread>

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

/// Other threads run while C++ works.
class GilRelease {
  public:
    GilRelease() : state_(PyEval_SaveThread()) {}
    ~GilRelease() {
        // A thread that comes back to a finalizing interpreter is ended there, by an unwinding no destructor survives.
        if (interpreter_is_ending()) sleep_forever();
        try {
            PyEval_RestoreThread(state_);
        } catch (abi::__forced_unwind&) {  // the end came while this thread queued for the lock
            sleep_forever();
        }
    }
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

  private:
    [[noreturn]] static void sleep_forever() {
        for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
    }
    static bool interpreter_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
        return Py_IsFinalizing();
#else
        return _Py_IsFinalizing();
#endif
    }
    PyThreadState* state_;
};

/// The call guard that operators bind with.
using ReleaseGil = nb::call_guard<GilRelease>;

}  // namespace vkml::python

#define VKML_PYTHON(op)                                                                 \
    static void bind_##op(::nanobind::module_& m, ::vkml::python::TensorClass& tensor); \
    static const ::vkml::python::Binding op##_binding(&bind_##op);                      \
    static void bind_##op([[maybe_unused]] ::nanobind::module_& m, [[maybe_unused]] ::vkml::python::TensorClass& tensor)

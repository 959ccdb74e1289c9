#include "bind.h"
#include "vkml/ops/arange/arange.h"
#include "vkml/runtime/registry.h"

VKML_PYTHON(arange) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "arange",
        [](const Scalar& start, const std::optional<Scalar>& stop, const Scalar& step, std::optional<DType> dtype,
           std::optional<Device> device) {
            const Device on = device.value_or(default_device());
            return stop ? arange(start, *stop, step, dtype, on) : arange(0, start, step, dtype, on);
        },
        "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(), "device"_a = nb::none(),
        R"(start, start + step, ... before stop; arange(stop) starts at 0. Integers give int64 and stay exact.

Examples
--------
>>> vkml.arange(2, 10, 3)
tensor([2, 5, 8])
>>> vkml.arange(3, dtype="float32")
tensor([0., 1., 2.])
)");
    m.def(
        "linspace",
        [](const Scalar& start, const Scalar& stop, std::int64_t steps, std::optional<DType> dtype,
           std::optional<Device> device) {
            return linspace(start, stop, steps, dtype.value_or(default_dtype()), device.value_or(default_device()));
        },
        "start"_a, "stop"_a, "steps"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
        R"(`steps` numbers from start to stop, both included.

Examples
--------
>>> vkml.linspace(0, 1, 5)
tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
)");
    m.def(
        "eye",
        [](std::int64_t n, std::optional<std::int64_t> columns, std::optional<DType> dtype,
           std::optional<Device> device) {
            return eye(n, columns.value_or(n), dtype.value_or(default_dtype()), device.value_or(default_device()));
        },
        "n"_a, "m"_a = nb::none(), "dtype"_a = nb::none(), "device"_a = nb::none(),
        R"(Ones on the diagonal, zeros elsewhere.

Examples
--------
>>> vkml.eye(2, 3)
tensor([[1., 0., 0.],
        [0., 1., 0.]])
)");
}

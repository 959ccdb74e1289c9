#include "bind.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/runtime/registry.h"

VKML_PYTHON(fill) {
    using namespace vkml;
    m.def(
        "full",
        [](const Dims& shape, const Scalar& value, std::optional<DType> dtype, std::optional<Device> device) {
            return full(shape, value, dtype.value_or(value.natural_dtype()), device.value_or(default_device()));
        },
        python::nb::arg("shape"), python::nb::arg("value"), python::nb::arg("dtype") = python::nb::none(),
        python::nb::arg("device") = python::nb::none());
}

#include "bind.h"
#include "vkml/ops/cast/cast.h"

VKML_PYTHON(cast) {
    using namespace vkml;
    m.def("cast", &cast, python::nb::arg("input"), python::nb::arg("dtype"), python::ReleaseGil(),
          R"(The same values as another dtype; differentiable between floats.

Examples
--------
>>> vkml.cast(vkml.tensor([1.7, -1.7]), "int32")
tensor([ 1, -1], dtype=vkml.int32)
)");
}

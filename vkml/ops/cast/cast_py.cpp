#include "bind.h"
#include "vkml/ops/cast/cast.h"

VKML_PYTHON(cast) {
    using namespace vkml;
    m.def("cast", &cast, python::nb::arg("input"), python::nb::arg("dtype"), python::ReleaseGil(),
          "The same values as another dtype; differentiable between floats.");
}

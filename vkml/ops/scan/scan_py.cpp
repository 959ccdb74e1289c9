#include "bind.h"
#include "vkml/ops/scan/scan.h"

VKML_PYTHON(scan) {
    using namespace vkml;
    using namespace vkml::python;
    constexpr const char* doc =
        "Sums of the elements up to and including each along dim. Integers and bool give int64.";
    m.def("cumsum", &cumsum, "input"_a, "dim"_a, doc, ReleaseGil());
    tensor.def("cumsum", &cumsum, "dim"_a, doc, ReleaseGil());
}

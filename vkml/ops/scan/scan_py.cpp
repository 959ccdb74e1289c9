#include "bind.h"
#include "vkml/ops/scan/scan.h"

VKML_PYTHON(scan) {
    using namespace vkml;
    using namespace vkml::python;
    constexpr const char* doc =
        R"(Sums of the elements up to and including each along dim. Integers and bool give int64.

Examples
--------
>>> vkml.cumsum(vkml.tensor([1, 2, 3]), 0)
tensor([1, 3, 6])
)";
    m.def("cumsum", &cumsum, "input"_a, "dim"_a, doc, ReleaseGil());
    tensor.def("cumsum", &cumsum, "dim"_a, doc, ReleaseGil());
}

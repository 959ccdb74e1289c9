#include "int2_caster.h"
#include "vkml/ops/pool2d/pool2d.h"

VKML_PYTHON(pool2d) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("max_pool2d", &max_pool2d, "input"_a, "kernel"_a, "stride"_a = Int2(0), "padding"_a = Int2(0),
          "dilation"_a = Int2(1), "ceil_mode"_a = false, ReleaseGil(), "The largest value of each window; NaN wins.");
    m.def("max_pool2d_with_indices", &max_pool2d_with_indices, "input"_a, "kernel"_a, "stride"_a = Int2(0),
          "padding"_a = Int2(0), "dilation"_a = Int2(1), "ceil_mode"_a = false, ReleaseGil(),
          "max_pool2d, and where in its plane each maximum was found.");
    m.def("avg_pool2d", &avg_pool2d, "input"_a, "kernel"_a, "stride"_a = Int2(0), "padding"_a = Int2(0),
          "ceil_mode"_a = false, "count_include_pad"_a = true, "divisor_override"_a = nb::none(), ReleaseGil(),
          "The mean of each window.");
}

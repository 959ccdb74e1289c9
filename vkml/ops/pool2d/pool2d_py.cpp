#include "int2_caster.h"
#include "vkml/ops/pool2d/pool2d.h"

VKML_PYTHON(pool2d) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("max_pool2d", &max_pool2d, "input"_a, "kernel"_a, "stride"_a = Int2(0), "padding"_a = Int2(0),
          "dilation"_a = Int2(1), "ceil_mode"_a = false, ReleaseGil(), R"(The largest value of each window; NaN wins.

Examples
--------
>>> vkml.max_pool2d(vkml.arange(16.0).reshape(1, 1, 4, 4), 2)
tensor([[[[ 5.,  7.],
          [13., 15.]]]])
)");
    m.def("max_pool2d_with_indices", &max_pool2d_with_indices, "input"_a, "kernel"_a, "stride"_a = Int2(0),
          "padding"_a = Int2(0), "dilation"_a = Int2(1), "ceil_mode"_a = false, ReleaseGil(),
          R"(max_pool2d, and where in its plane each maximum was found.

Examples
--------
>>> values, indices = vkml.max_pool2d_with_indices(vkml.arange(16.0).reshape(1, 1, 4, 4), 2)
>>> indices
tensor([[[[ 5,  7],
          [13, 15]]]])
)");
    m.def("avg_pool2d", &avg_pool2d, "input"_a, "kernel"_a, "stride"_a = Int2(0), "padding"_a = Int2(0),
          "ceil_mode"_a = false, "count_include_pad"_a = true, "divisor_override"_a = nb::none(), ReleaseGil(),
          R"(The mean of each window.

Examples
--------
>>> vkml.avg_pool2d(vkml.arange(16.0).reshape(1, 1, 4, 4), 2)
tensor([[[[ 2.5000,  4.5000],
          [10.5000, 12.5000]]]])
)");
}

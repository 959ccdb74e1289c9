#include "bind.h"
#include "vkml/ops/multi_tensor/multi_tensor.h"

VKML_PYTHON(multi_tensor) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("_multi_norm", &multi_norm, "tensors"_a, ReleaseGil(), "The norm over all elements of all tensors.");
    m.def(
        "_multi_scale_",
        [](const std::vector<Tensor>& tensors, const Tensor& factor, const std::optional<Tensor>& found) {
            multi_scale_(tensors, factor, found.value_or(Tensor{}));
        },
        "tensors"_a, "factor"_a, "found"_a = nb::none(), ReleaseGil(),
        "Multiplies every element of every tensor; `found` becomes 1 if one was not finite.");
    m.def("_multi_lerp_", &multi_lerp_, "targets"_a, "sources"_a, "weight"_a, ReleaseGil(),
          "targets += weight (sources - targets), for all tensors at once.");
}

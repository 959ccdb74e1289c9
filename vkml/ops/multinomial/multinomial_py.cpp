#include "vkml/ops/multinomial/multinomial.h"
#include "vkml/ops/random/draw_py.h"

VKML_PYTHON(multinomial) {
    using namespace vkml;
    using namespace vkml::python;
    const auto draw = [](const Tensor& input, std::int64_t num_samples, bool replacement, Seed seed, nb::int_ offset) {
        return multinomial(input, num_samples, replacement, draw_of(seed, offset));
    };
    constexpr const char* kDoc = R"(int64 indices into the last axis, each as likely as its weight's share of the row.

Without replacement no index comes twice. A seed makes it a pure function of (seed, offset) and the weights, the same on
every device; without one it takes the default generator's next draw. Weights are read as float32: float64 ones beyond
its range are not finite, or 0.

Raises
------
ShapeError
    More samples than weights without replacement; and, on Vulkan at the next read, weights that are negative or not
    finite, or too few of them above 0.

Examples
--------
>>> vkml.multinomial(vkml.tensor([0., 10., 3., 0.]), 2, seed=1)
tensor([1, 2])
>>> vkml.multinomial(vkml.tensor([[1., 1.], [0., 1.]]), 5, replacement=True, seed=1)
tensor([[1, 1, 1, 0, 1],
        [1, 1, 1, 1, 1]])
)";
    m.def("multinomial", draw, "input"_a, "num_samples"_a, "replacement"_a = false, nb::kw_only(),
          "seed"_a = nb::none(), "offset"_a = 0, kDoc);
    tensor.def("multinomial", draw, "num_samples"_a, "replacement"_a = false, nb::kw_only(), "seed"_a = nb::none(),
               "offset"_a = 0, "Indices drawn with these weights.");
}

#include "bind.h"
#include "vkml/ops/linear/linear.h"

VKML_PYTHON(linear) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "linear",
        [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
           const std::optional<std::string>& activation) {
            return linear(input, weight, bias.value_or(Tensor{}), activation ? std::string_view(*activation) : "none");
        },
        "input"_a, "weight"_a, "bias"_a = nb::none(), nb::kw_only(), "activation"_a = nb::none(), ReleaseGil(),
        "input @ weight.T + bias, then relu, gelu, gelu_tanh or silu, in one kernel.");
    m.def("addmm", &addmm, "input"_a, "a"_a, "b"_a, nb::kw_only(), "beta"_a = 1, "alpha"_a = 1, ReleaseGil(),
          "beta input + alpha (a @ b).");
    m.def("bmm", &bmm, "input"_a, "other"_a, ReleaseGil(), "Batched matrix product without broadcasting.");
    m.def("dot", &dot, "input"_a, "other"_a, ReleaseGil(), "Inner product of two vectors.");
    m.def("outer", &outer, "input"_a, "other"_a, ReleaseGil(), "Outer product of two vectors.");
    tensor.def("bmm", &bmm, "other"_a, ReleaseGil());
    tensor.def("dot", &dot, "other"_a, ReleaseGil());
    tensor.def("outer", &outer, "other"_a, ReleaseGil());
}

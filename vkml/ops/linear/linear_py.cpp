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
        R"(input @ weight.T + bias, then relu, gelu, gelu_tanh or silu if one is named, in one kernel.

Examples
--------
>>> vkml.linear(vkml.tensor([1., 2.]), vkml.tensor([[1., 0.], [3., 4.]]), vkml.tensor([10., 20.]))
tensor([11., 31.])
>>> vkml.linear(vkml.tensor([1., 2.]), vkml.tensor([[1., 0.], [-3., 1.]]), activation="relu")
tensor([1., 0.])
)");
    m.def("addmm", &addmm, "input"_a, "a"_a, "b"_a, nb::kw_only(), "beta"_a = 1, "alpha"_a = 1, ReleaseGil(),
          R"(beta input + alpha (a @ b).

Examples
--------
>>> vkml.addmm(vkml.tensor([1., 2.]), vkml.ones(2, 3), vkml.ones(3, 2), alpha=10)
tensor([[31., 32.],
        [31., 32.]])
)");
    m.def("bmm", &bmm, "input"_a, "other"_a, ReleaseGil(), R"(Batched matrix product without broadcasting.

Examples
--------
>>> vkml.bmm(vkml.ones(2, 1, 3), vkml.ones(2, 3, 4)).shape
(2, 1, 4)
)");
    m.def("dot", &dot, "input"_a, "other"_a, ReleaseGil(), R"(Inner product of two vectors.

Examples
--------
>>> vkml.dot(vkml.tensor([1., 2.]), vkml.tensor([3., 4.]))
tensor(11.)
)");
    m.def("outer", &outer, "input"_a, "other"_a, ReleaseGil(), R"(Outer product of two vectors.

Examples
--------
>>> vkml.outer(vkml.tensor([1., 2.]), vkml.tensor([3., 4.]))
tensor([[3., 4.],
        [6., 8.]])
)");
    tensor.def("bmm", &bmm, "other"_a, ReleaseGil());
    tensor.def("dot", &dot, "other"_a, ReleaseGil());
    tensor.def("outer", &outer, "other"_a, ReleaseGil());
}

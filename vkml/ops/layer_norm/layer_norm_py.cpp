#include <nanobind/stl/variant.h>

#include "bind.h"
#include "vkml/ops/layer_norm/layer_norm.h"
#include "vkml/ops/layer_norm/norm_kernel.h"

VKML_PYTHON(layer_norm) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "layer_norm",
        [](const Tensor& input, const std::variant<std::int64_t, std::vector<std::int64_t>>& axes, double eps,
           const std::optional<Tensor>& weight, const std::optional<Tensor>& bias) {
            const auto* sizes = std::get_if<1>(&axes);
            const std::int64_t count =
                sizes ? axes_of_sizes("layer_norm", input, Shape(std::span(*sizes))) : std::get<0>(axes);
            return layer_norm(input, count, eps, weight.value_or(Tensor{}), bias.value_or(Tensor{}));
        },
        "input"_a, "normalized_axes"_a = 1, "eps"_a = 1e-5, nb::kw_only(), "weight"_a = nb::none(),
        "bias"_a = nb::none(), ReleaseGil(),
        R"(Normalises trailing axes: ``(x - mean) / sqrt(var + eps) * weight + bias``, with the biased variance.

Parameters
----------
input : Tensor
    Floating point, rank 1 or more.
normalized_axes : int or sequence of int
    How many trailing axes, or their sizes.
eps : float
    Added to the variance.
weight, bias : Tensor, optional
    Of the normalised shape, in the input's dtype or float32.

Returns
-------
Tensor
    Same shape and dtype.

Examples
--------
>>> x = vkml.tensor([[1.0, 2.0, 3.0]])
>>> vkml.layer_norm(x, 1, 1e-5).numpy()
array([[-1.2247356,  0.       ,  1.2247356]], dtype=float32)
)");
}

#include <nanobind/stl/variant.h>

#include "bind.h"
#include "vkml/ops/layer_norm/norm_kernel.h"
#include "vkml/ops/rms_norm/rms_norm.h"

VKML_PYTHON(rms_norm) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "rms_norm",
        [](const Tensor& input, const std::variant<std::int64_t, std::vector<std::int64_t>>& axes, double eps,
           const std::optional<Tensor>& weight) {
            const auto* sizes = std::get_if<1>(&axes);
            const std::int64_t count =
                sizes ? axes_of_sizes("rms_norm", input, Shape(std::span(*sizes))) : std::get<0>(axes);
            return rms_norm(input, count, eps, weight.value_or(Tensor{}));
        },
        "input"_a, "normalized_axes"_a = 1, "eps"_a = 1e-5, nb::kw_only(), "weight"_a = nb::none(), ReleaseGil(),
        R"(Divides trailing axes by their root mean square: ``x / sqrt(mean(x^2) + eps) * weight``.

Parameters
----------
input : Tensor
    Floating point, rank 1 or more.
normalized_axes : int or sequence of int
    How many trailing axes, or their sizes.
eps : float
    Added to the mean square. PyTorch's default is the dtype's epsilon.
weight : Tensor, optional
    Of the normalised shape, in the input's dtype or float32.

Returns
-------
Tensor
    Same shape and dtype.

Examples
--------
>>> x = vkml.tensor([[1.0, 2.0, 3.0]])
>>> vkml.rms_norm(x, 1, 1e-5).numpy()
array([[0.46290955, 0.9258191 , 1.3887286 ]], dtype=float32)
)");
}

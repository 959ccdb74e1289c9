#include "bind.h"
#include "vkml/ops/softmax/softmax.h"
#include "vkml/runtime/rows.h"

VKML_PYTHON(softmax) {
    using namespace vkml;
    using namespace vkml::python;
    const auto both = [&](const char* name, Tensor (*f)(const Tensor&, std::int64_t), const char* text) {
        m.def(name, f, "input"_a, "dim"_a = -1, ReleaseGil(), text);
        tensor.def(name, f, "dim"_a = -1, ReleaseGil(), text);
    };
    both("softmax", &softmax, R"(Softmax along an axis: ``exp(x - max) / sum(exp(x - max))``.

Parameters
----------
input : Tensor
    Floating point, any shape and strides.
dim : int
    The axis that sums to 1.

Returns
-------
Tensor
    Same shape and dtype.

Examples
--------
>>> x = vkml.tensor([[1.0, 2.0, 3.0]])
>>> vkml.softmax(x, -1).numpy()
array([[0.09003057, 0.24472848, 0.66524094]], dtype=float32)
)");
    both("log_softmax", &log_softmax, R"(Logarithm of softmax along an axis: ``(x - max) - log(sum(exp(x - max)))``.

Parameters
----------
input : Tensor
    Floating point, any shape and strides.
dim : int
    The axis that is normalised.

Returns
-------
Tensor
    Same shape and dtype.

Examples
--------
>>> x = vkml.tensor([[1.0, 2.0, 3.0]])
>>> vkml.log_softmax(x, -1).numpy()
array([[-2.407606  , -1.4076059 , -0.40760595]], dtype=float32)
)");
    // For tests of the structures behind softmax.rows and its like.
    m.def("_force_row_structure", [](const std::string& name) { force_row_structure(name); });
}

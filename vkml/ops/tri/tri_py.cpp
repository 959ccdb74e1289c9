#include "bind.h"
#include "vkml/ops/tri/tri.h"

VKML_PYTHON(tri) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("triu", &triu, "input"_a, "diagonal"_a = 0,
          R"(The upper triangle of the last two axes: column - row >= diagonal; 0 elsewhere.

Examples
--------
>>> vkml.triu(vkml.ones(2, 3), 1)
tensor([[0., 1., 1.],
        [0., 0., 1.]])
)");
    m.def("tril", &tril, "input"_a, "diagonal"_a = 0,
          R"(The lower triangle of the last two axes: column - row <= diagonal; 0 elsewhere.

Examples
--------
>>> vkml.tril(vkml.ones(2, 3))
tensor([[1., 0., 0.],
        [1., 1., 0.]])
)");
    tensor.def("triu", &triu, "diagonal"_a = 0).def("tril", &tril, "diagonal"_a = 0);
}

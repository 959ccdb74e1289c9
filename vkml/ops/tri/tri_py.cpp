#include "bind.h"
#include "vkml/ops/tri/tri.h"

VKML_PYTHON(tri) {
    using namespace vkml;
    using namespace vkml::python;
    m.def("triu", &triu, "input"_a, "diagonal"_a = 0,
          "The upper triangle of the last two axes: column - row >= diagonal; 0 elsewhere.");
    m.def("tril", &tril, "input"_a, "diagonal"_a = 0,
          "The lower triangle of the last two axes: column - row <= diagonal; 0 elsewhere.");
    tensor.def("triu", &triu, "diagonal"_a = 0).def("tril", &tril, "diagonal"_a = 0);
}

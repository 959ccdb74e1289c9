#include "bind.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/index/subscript_py.h"

namespace {

using namespace vkml;
using namespace vkml::python;

constexpr char kScatterAdd[] =
    "scatter_add(x, dim, index, src): a copy of x with src[i, j, k] added at [i, index[i, j, k], k] for dim = 1.\n"
    "scatter_add(src, axis, index, dim_size): zeros with dim_size rows, and the rows of src added at a rank-1 index.\n"
    "Repeated places add in ascending source order, with the same bits on every device.";

/// weight and index in vkML's order; in torch's order the integer tensor comes first.
Tensor embed(const Tensor& a, const Tensor& b, std::optional<std::int64_t> padding_idx) {
    return is_integer(a.dtype()) && !is_integer(b.dtype()) ? embedding(b, a, padding_idx)
                                                           : embedding(a, b, padding_idx);
}

void bind_methods(TensorClass& tensor) {
    tensor.def("gather", &gather, "dim"_a, "index"_a)
        .def("index_select", &index_select, "dim"_a, "index"_a)
        .def("index_add", &index_add, "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1)
        .def(
            "scatter_add",
            [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
                return scatter_add(x, dim, index, src);
            },
            "dim"_a, "index"_a, "src"_a)
        .def("masked_select", &masked_select, "mask"_a)
        .def("nonzero", &nonzero)
        .def(
            "__getitem__", [](const Tensor& t, nb::handle key) { return subscript(t, key); }, nb::arg("key").none())
        .def(
            "__setitem__", [](const Tensor& t, nb::handle key, nb::handle value) { assign_subscript(t, key, value); },
            nb::arg("key").none(), nb::arg("value"));
}

}  // namespace

VKML_PYTHON(index) {
    m.def("gather", &gather, "input"_a, "dim"_a, "index"_a,
          "out[i, j, k] = input[i, index[i, j, k], k] for dim = 1; the index may be smaller than the input on the "
          "other axes.");
    m.def(
        "index_select",
        [](const Tensor& input, std::int64_t dim, const Tensor& index) { return index_select(input, dim, index); },
        "input"_a, "dim"_a, "index"_a, "The rows along dim that a rank-1 index names.");
    m.def(
        "index_select",
        [](const Tensor& input, const Tensor& index, std::int64_t axis) { return index_select(input, axis, index); },
        "input"_a, nb::kw_only(), "index"_a, "axis"_a);
    m.def("index_add", &index_add, "input"_a, "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1,
          "A copy of input with the rows of alpha * source added at a rank-1 index.");
    m.def(
        "scatter_add",
        [](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
            return scatter_add(x, dim, index, src);
        },
        "x"_a, "dim"_a, "index"_a, "src"_a, kScatterAdd);
    m.def(
        "scatter_add",
        [](const Tensor& src, std::int64_t axis, const Tensor& index, std::int64_t size) {
            return scatter_add(src, axis, index, size);
        },
        "src"_a, "axis"_a, "index"_a, "dim_size"_a);
    m.def("embedding", &embed, "weight"_a, "index"_a, "padding_idx"_a = nb::none(),
          "Rows of weight for an index of any shape; row padding_idx gets no gradient. An integer first argument is "
          "taken as the index.");
    m.def("nonzero", &nonzero, "input"_a, "The indices of the non-zero elements, (count, rank) in row-major order.");
    m.def("masked_select", &masked_select, "input"_a, "mask"_a, "The elements under a true mask, rank 1.");
    bind_methods(tensor);
}

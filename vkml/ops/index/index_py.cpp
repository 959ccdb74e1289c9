#include "bind.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/index/subscript_py.h"

namespace {

using namespace vkml;
using namespace vkml::python;

constexpr char kScatterAdd[] =
    R"(scatter_add(x, dim, index, src): a copy of x with src[i, j, k] added at [i, index[i, j, k], k] for
dim = 1.
scatter_add(src, axis, index, dim_size): zeros with dim_size rows, and the rows of src added at a
rank-1 index.
Repeated places add in ascending source order, with the same bits on every device.

Examples
--------
>>> vkml.scatter_add(vkml.zeros(3), 0, vkml.tensor([0, 2, 0]), vkml.tensor([1., 2., 3.]))
tensor([4., 0., 2.])
>>> vkml.scatter_add(vkml.tensor([1., 2., 3.]), 0, vkml.tensor([0, 2, 0]), 3)
tensor([4., 0., 2.])
)";

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
          R"(out[i, j, k] = input[i, index[i, j, k], k] for dim = 1; the index may be smaller than the input on
the other axes.

Examples
--------
>>> vkml.gather(vkml.tensor([[1, 2], [3, 4]]), 1, vkml.tensor([[0, 0], [1, 0]]))
tensor([[1, 1],
        [4, 3]])
)");
    m.def(
        "index_select",
        [](const Tensor& input, std::int64_t dim, const Tensor& index) { return index_select(input, dim, index); },
        "input"_a, "dim"_a, "index"_a, R"(The rows along dim that a rank-1 index names.

Examples
--------
>>> vkml.index_select(vkml.tensor([[1, 2], [3, 4]]), 0, vkml.tensor([1, 1, 0]))
tensor([[3, 4],
        [3, 4],
        [1, 2]])
)");
    m.def(
        "index_select",
        [](const Tensor& input, const Tensor& index, std::int64_t axis) { return index_select(input, axis, index); },
        "input"_a, nb::kw_only(), "index"_a, "axis"_a);
    m.def("index_add", &index_add, "input"_a, "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = 1,
          R"(A copy of input with the rows of alpha * source added at a rank-1 index.

Examples
--------
>>> vkml.index_add(vkml.zeros(3), 0, vkml.tensor([0, 2, 0]), vkml.tensor([1., 2., 3.]))
tensor([4., 0., 2.])
)");
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
          R"(Rows of weight for an index of any shape; row padding_idx gets no gradient. An integer first
argument is taken as the index.

Examples
--------
>>> vkml.embedding(vkml.tensor([[1., 2.], [3., 4.], [5., 6.]]), vkml.tensor([2, 0]))
tensor([[5., 6.],
        [1., 2.]])
)");
    m.def("nonzero", &nonzero, "input"_a, R"(The indices of the non-zero elements, (count, rank) in row-major order.

Examples
--------
>>> vkml.nonzero(vkml.tensor([[0, 7], [8, 0]]))
tensor([[0, 1],
        [1, 0]])
)");
    m.def("masked_select", &masked_select, "input"_a, "mask"_a, R"(The elements under a true mask, rank 1.

Examples
--------
>>> vkml.masked_select(vkml.tensor([1., 2., 3.]), vkml.tensor([True, False, True]))
tensor([1., 3.])
)");
    bind_methods(tensor);
}

#include "bind.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/shape/diagonal.h"
#include "vkml/ops/shape/shape.h"

VKML_PYTHON(shape) {
    using namespace vkml;
    using namespace vkml::python;
    tensor.def(
        "reshape", [](const Tensor& t, const nb::args& shape) { return reshape(t, dims_from("reshape", shape)); },
        "The same elements in another shape; one extent may be -1. A view if possible, else a copy.");
    tensor.def(
        "view", [](const Tensor& t, const nb::args& shape) { return reshape(t, dims_from("view", shape)); },
        "As reshape: copies if it must.");
    tensor.def(
        "expand", [](const Tensor& t, const nb::args& shape) { return expand(t, dims_from("expand", shape)); },
        "Repeats extents of 1 without a copy; -1 keeps an extent.");
    tensor.def(
        "permute", [](const Tensor& t, const nb::args& dims) { return permute(t, dims_from("permute", dims)); },
        "Reorders the axes.");
    m.def("reshape", &reshape, "input"_a, "shape"_a, R"(The same elements in another shape; one extent may be -1.

Examples
--------
>>> vkml.reshape(vkml.arange(6), (2, -1))
tensor([[0, 1, 2],
        [3, 4, 5]])
)");
    m.def(
        "permute", [](const Tensor& t, const Dims& dims) { return permute(t, dims); }, "input"_a, "dims"_a,
        R"(Reorders the axes.

Examples
--------
>>> vkml.permute(vkml.ones(2, 3, 4), (2, 0, 1)).shape
(4, 2, 3)
)");
    m.def(
        "expand", [](const Tensor& t, const Dims& shape) { return expand(t, shape); }, "input"_a, "shape"_a,
        R"(Repeats extents of 1 without a copy; -1 keeps an extent.

Examples
--------
>>> vkml.expand(vkml.tensor([[1], [2]]), (-1, 3))
tensor([[1, 1, 1],
        [2, 2, 2]])
)");

    const auto both = [&](const char* name, auto function, const auto&... extra) {
        m.def(name, function, "input"_a, extra...);
        tensor.def(name, function, extra...);
    };
    both(
        "broadcast_to", [](const Tensor& t, const Dims& shape) { return expand(t, shape); }, "shape"_a,
        R"(Repeats extents of 1 without a copy.

Examples
--------
>>> vkml.broadcast_to(vkml.tensor([1, 2]), (2, 2))
tensor([[1, 2],
        [1, 2]])
)");
    both("transpose", &transpose, "dim0"_a, "dim1"_a, R"(Swaps two axes.

Examples
--------
>>> vkml.transpose(vkml.tensor([[1, 2], [3, 4]]), 0, 1)
tensor([[1, 3],
        [2, 4]])
)");
    both(
        "t",
        [](const Tensor& t) {
            check(t.ndim() <= 2, "t: expected rank <= 2, got ", t.shape());
            return t.ndim() < 2 ? t : transpose(t, 0, 1);
        },
        R"(The transpose of a matrix, a view; tensors of rank 0 and 1 as they are.

Examples
--------
>>> vkml.t(vkml.tensor([[1, 2], [3, 4]]))
tensor([[1, 3],
        [2, 4]])
)");
    both("movedim", &movedim, "source"_a, "destination"_a, R"(Moves axes to new places; the others keep their order.

Examples
--------
>>> vkml.movedim(vkml.ones(2, 3, 4), 0, 2).shape
(3, 4, 2)
)");
    both(
        "squeeze", [](const Tensor& t, const std::optional<Dims>& dim) { return dim ? squeeze(t, *dim) : squeeze(t); },
        "dim"_a = nb::none(), R"(Drops axes of extent 1: all, or those listed.

Examples
--------
>>> vkml.squeeze(vkml.ones(1, 3, 1)).shape
(3,)
)");
    both("unsqueeze", &unsqueeze, "dim"_a, R"(A new axis of extent 1.

Examples
--------
>>> vkml.unsqueeze(vkml.ones(3), 0).shape
(1, 3)
)");
    both("flatten", &flatten, "start_dim"_a = 0, "end_dim"_a = -1, R"(Merges the axes start_dim to end_dim.

Examples
--------
>>> vkml.flatten(vkml.ones(2, 3, 4), 1).shape
(2, 12)
)");
    both("unflatten", &unflatten, "dim"_a, "sizes"_a, R"(Splits one axis into sizes; one of them may be -1.

Examples
--------
>>> vkml.unflatten(vkml.ones(2, 12), 1, (3, -1)).shape
(2, 3, 4)
)");
    both("narrow", &narrow, "dim"_a, "start"_a, "length"_a, R"(`length` elements along dim from `start`.

Examples
--------
>>> vkml.narrow(vkml.tensor([[1, 2, 3], [4, 5, 6]]), 1, 1, 2)
tensor([[2, 3],
        [5, 6]])
)");
    both("select", static_cast<Tensor (*)(const Tensor&, std::int64_t, std::int64_t)>(&select), "dim"_a, "index"_a,
         R"(Drops dim at index.

Examples
--------
>>> vkml.select(vkml.tensor([[1, 2], [3, 4]]), 1, 0)
tensor([1, 3])
)");
    m.def("_diagonal", &diagonal, "input"_a, "offset"_a, "dim1"_a, "dim2"_a);
    both("contiguous", &contiguous, R"(The tensor itself if it is packed, else a packed copy.

Examples
--------
>>> vkml.contiguous(vkml.ones(2, 3).T).stride()
(2, 1)
)");
    both("clone", [](const Tensor& t) { return clone(t); }, R"(A packed copy with memory of its own.

Examples
--------
>>> x = vkml.ones(2)
>>> y = vkml.clone(x)
>>> _ = y.fill_(3)
>>> x, y
(tensor([1., 1.]), tensor([3., 3.]))
)");
    both("detach", &detach, R"(The same memory without a gradient history.

Examples
--------
>>> x = vkml.ones(2, requires_grad=True)
>>> vkml.detach(x * 2).requires_grad
False
)");
    tensor.def_prop_ro(
        "T", [](const Tensor& t) { return t.ndim() < 2 ? t : transpose(t, -2, -1); }, "The last two axes swapped.");
    tensor.def_prop_ro("mT", [](const Tensor& t) { return transpose(t, -2, -1); }, "The last two axes swapped.");
}

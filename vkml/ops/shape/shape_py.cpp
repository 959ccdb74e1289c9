#include "bind.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/shape/shape.h"

namespace vkml::python {
namespace {

/// `t.reshape(2, 3)`, `t.reshape((2, 3))` and `t.reshape([2, 3])` mean the same.
Dims dims_from(std::string_view op, const nb::args& args) {
    if (args.size() == 1 && !PyIndex_Check(args[0].ptr())) {
        Dims out;
        if (!nb::try_cast<Dims>(args[0], out))
            fail<ShapeError>(op, ": expected integers or a sequence of integers, at most 8, got ",
                             nb::cast<std::string>(nb::repr(args[0])));
        return out;
    }
    Dims out;
    for (nb::handle item : args) {
        nb::object index = nb::steal(PyNumber_Index(item.ptr()));
        if (!index.is_valid()) {
            PyErr_Clear();
            fail<ShapeError>(op, ": expected integers, got ", nb::cast<std::string>(nb::repr(item)));
        }
        out.push_back(nb::cast<std::int64_t>(index));
    }
    return out;
}

}  // namespace
}  // namespace vkml::python

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
    m.def("reshape", &reshape, "input"_a, "shape"_a, "The same elements in another shape; one extent may be -1.");
    m.def(
        "permute", [](const Tensor& t, const Dims& dims) { return permute(t, dims); }, "input"_a, "dims"_a,
        "Reorders the axes.");
    m.def("expand", [](const Tensor& t, const Dims& shape) { return expand(t, shape); }, "input"_a, "shape"_a);

    const auto both = [&](const char* name, auto function, const auto&... extra) {
        m.def(name, function, "input"_a, extra...);
        tensor.def(name, function, extra...);
    };
    both(
        "broadcast_to", [](const Tensor& t, const Dims& shape) { return expand(t, shape); }, "shape"_a,
        "Repeats extents of 1 without a copy.");
    both("transpose", &transpose, "dim0"_a, "dim1"_a, "Swaps two axes.");
    both("movedim", &movedim, "source"_a, "destination"_a, "Moves axes to new places; the others keep their order.");
    both(
        "squeeze", [](const Tensor& t, const std::optional<Dims>& dim) { return dim ? squeeze(t, *dim) : squeeze(t); },
        "dim"_a = nb::none(), "Drops axes of extent 1: all, or those listed.");
    both("unsqueeze", &unsqueeze, "dim"_a, "A new axis of extent 1.");
    both("flatten", &flatten, "start_dim"_a = 0, "end_dim"_a = -1, "Merges the axes start_dim to end_dim.");
    both("unflatten", &unflatten, "dim"_a, "sizes"_a, "Splits one axis into sizes; one of them may be -1.");
    both("narrow", &narrow, "dim"_a, "start"_a, "length"_a, "length elements along dim from start.");
    both("select", static_cast<Tensor (*)(const Tensor&, std::int64_t, std::int64_t)>(&select), "dim"_a, "index"_a,
         "Drops dim at index.");
    both("contiguous", &contiguous, "The tensor itself if it is packed, else a packed copy.");
    both("clone", [](const Tensor& t) { return clone(t); }, "A packed copy with memory of its own.");
    both("detach", &detach, "The same memory without a gradient history.");
    tensor.def_prop_ro(
        "T", [](const Tensor& t) { return t.ndim() < 2 ? t : transpose(t, -2, -1); }, "The last two axes swapped.");
    tensor.def_prop_ro("mT", [](const Tensor& t) { return transpose(t, -2, -1); }, "The last two axes swapped.");
}

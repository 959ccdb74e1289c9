#include <nanobind/stl/variant.h>

#include "bind.h"
#include "vkml/ops/cat/cat.h"

namespace {

using namespace vkml;
using namespace vkml::python;

using Sizes = std::variant<std::int64_t, std::vector<std::int64_t>>;

std::vector<Tensor> split_by(const Tensor& input, const Sizes& sizes, std::int64_t dim) {
    if (const auto* size = std::get_if<std::int64_t>(&sizes)) return split(input, *size, dim);
    return split(input, std::span(std::get<std::vector<std::int64_t>>(sizes)), dim);
}

template <class T>
nb::tuple as_tuple(const std::vector<T>& items) {
    nb::list list;
    for (const T& item : items) list.append(nb::cast(item));
    return nb::tuple(list);
}

}  // namespace

VKML_PYTHON(cat) {
    m.def(
        "cat", [](const std::vector<Tensor>& tensors, std::int64_t dim) { return cat(tensors, dim); }, "tensors"_a,
        "dim"_a = 0, R"(The tensors one after the other along dim, in the dtype they promote to. A tensor of shape (0,)
joins anything.

Examples
--------
>>> vkml.cat([vkml.tensor([[1, 2]]), vkml.tensor([[3, 4]])])
tensor([[1, 2],
        [3, 4]])
>>> vkml.cat([vkml.tensor([1]), vkml.tensor([2.5])])
tensor([1.0000, 2.5000])
)");
    m.def(
        "stack", [](const std::vector<Tensor>& tensors, std::int64_t dim) { return stack(tensors, dim); }, "tensors"_a,
        "dim"_a = 0, R"(The tensors side by side along a new axis.

Examples
--------
>>> vkml.stack([vkml.tensor([1, 2]), vkml.tensor([3, 4])], dim=1)
tensor([[1, 3],
        [2, 4]])
)");
    const auto split_tuple = [](const Tensor& input, const Sizes& sizes, std::int64_t dim) {
        return as_tuple(split_by(input, sizes, dim));
    };
    const auto chunk_tuple = [](const Tensor& input, std::int64_t chunks, std::int64_t dim) {
        return as_tuple(chunk(input, chunks, dim));
    };
    m.def("split", split_tuple, "input"_a, "split_size"_a, "dim"_a = 0,
          R"(Views of that size each, or of the sizes listed, along dim.

Examples
--------
>>> vkml.split(vkml.arange(5), 2)
(tensor([0, 1]), tensor([2, 3]), tensor([4]))
>>> vkml.split(vkml.arange(5), [1, 4])
(tensor([0]), tensor([1, 2, 3, 4]))
)");
    m.def("chunk", chunk_tuple, "input"_a, "chunks"_a, "dim"_a = 0,
          R"(At most `chunks` views of equal size along dim; the last may be smaller.

Examples
--------
>>> vkml.chunk(vkml.arange(5), 2)
(tensor([0, 1, 2]), tensor([3, 4]))
)");
    tensor.def("split", split_tuple, "split_size"_a, "dim"_a = 0).def("chunk", chunk_tuple, "chunks"_a, "dim"_a = 0);
}

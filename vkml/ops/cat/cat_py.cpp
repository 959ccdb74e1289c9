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

std::int64_t pick(std::int64_t dim, const std::optional<std::int64_t>& axis) { return axis.value_or(dim); }

}  // namespace

VKML_PYTHON(cat) {
    m.def(
        "cat",
        [](const std::vector<Tensor>& tensors, std::int64_t dim, std::optional<std::int64_t> axis) {
            return cat(tensors, pick(dim, axis));
        },
        "tensors"_a, "dim"_a = 0, nb::kw_only(), "axis"_a = nb::none(),
        "The tensors one after the other along dim, in the dtype they promote to. A tensor of shape (0,) joins "
        "anything.");
    m.def(
        "stack", [](const std::vector<Tensor>& tensors, std::int64_t dim) { return stack(tensors, dim); }, "tensors"_a,
        "dim"_a = 0, "The tensors side by side along a new axis.");
    const auto split_tuple = [](const Tensor& input, const Sizes& sizes, std::int64_t dim) {
        return as_tuple(split_by(input, sizes, dim));
    };
    const auto chunk_tuple = [](const Tensor& input, std::int64_t chunks, std::int64_t dim) {
        return as_tuple(chunk(input, chunks, dim));
    };
    m.def("split", split_tuple, "input"_a, "split_size"_a, "dim"_a = 0,
          "Views of that size each, or of the sizes listed, along dim.");
    m.def("chunk", chunk_tuple, "input"_a, "chunks"_a, "dim"_a = 0,
          "At most `chunks` views of equal size along dim; the last may be smaller.");
    tensor.def("split", split_tuple, "split_size"_a, "dim"_a = 0).def("chunk", chunk_tuple, "chunks"_a, "dim"_a = 0);
}

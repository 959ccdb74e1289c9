#include <nanobind/stl/variant.h>

#include "bind.h"
#include "vkml/ops/rearrange/rearrange.h"

namespace {

using namespace vkml;
using namespace vkml::python;

Tensor interleave(const Tensor& input, const std::variant<std::int64_t, Tensor>& repeats,
                  std::optional<std::int64_t> dim) {
    if (const auto* times = std::get_if<std::int64_t>(&repeats)) return repeat_interleave(input, *times, dim);
    return repeat_interleave(input, std::get<Tensor>(repeats), dim);
}

}  // namespace

VKML_PYTHON(rearrange) {
    const auto roll_ = [](const Tensor& input, const Dims& shifts, const std::optional<Dims>& dims) {
        return roll(input, shifts, dims.value_or(Dims{}));
    };
    m.def("flip", &flip, "input"_a, "dims"_a, R"(A copy with the axes listed reversed.

Examples
--------
>>> vkml.flip(vkml.tensor([[1, 2], [3, 4]]), 1)
tensor([[2, 1],
        [4, 3]])
)");
    m.def("roll", roll_, "input"_a, "shifts"_a, "dims"_a = nb::none(),
          R"(Moves elements along dims; those that fall off come back at the other end. Without dims, along the
flattened tensor.

Examples
--------
>>> vkml.roll(vkml.tensor([1, 2, 3, 4]), 1)
tensor([4, 1, 2, 3])
)");
    m.def("repeat", &repeat, "input"_a, "repeats"_a, R"(The tensor side by side, repeats[i] times along axis i.

Examples
--------
>>> vkml.repeat(vkml.tensor([1, 2]), (2, 2))
tensor([[1, 2, 1, 2],
        [1, 2, 1, 2]])
)");
    m.def("tile", &tile, "input"_a, "dims"_a, R"(repeat(), but fewer numbers than axes count from the last axis.

Examples
--------
>>> vkml.tile(vkml.tensor([[1, 2], [3, 4]]), (2,))
tensor([[1, 2, 1, 2],
        [3, 4, 3, 4]])
)");
    m.def("repeat_interleave", &interleave, "input"_a, "repeats"_a, "dim"_a = nb::none(),
          R"(Every element several times in a row along dim; without dim, of the flattened tensor.

Examples
--------
>>> vkml.repeat_interleave(vkml.tensor([1, 2]), 2)
tensor([1, 1, 2, 2])
)");
    tensor.def("flip", [](const Tensor& t, nb::args dims) { return flip(t, dims_from("flip", dims)); })
        .def("roll", roll_, "shifts"_a, "dims"_a = nb::none())
        .def("repeat", [](const Tensor& t, nb::args repeats) { return repeat(t, dims_from("repeat", repeats)); })
        .def("tile", [](const Tensor& t, nb::args repeats) { return tile(t, dims_from("tile", repeats)); })
        .def("repeat_interleave", &interleave, "repeats"_a, "dim"_a = nb::none());
}

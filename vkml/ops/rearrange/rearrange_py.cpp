#include <nanobind/stl/variant.h>

#include "bind.h"
#include "vkml/ops/rearrange/rearrange.h"

namespace {

using namespace vkml;
using namespace vkml::python;

/// f(x, 2, 3) as well as f(x, (2, 3)).
Dims dims_of(nb::args args) {
    if (args.size() == 1) return nb::cast<Dims>(args[0]);
    return nb::cast<Dims>(nb::handle(args));
}

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
    m.def("flip", &flip, "input"_a, "dims"_a, "A copy with the axes listed reversed.");
    m.def("roll", roll_, "input"_a, "shifts"_a, "dims"_a = nb::none(),
          "Moves elements along dims; those that fall off come back at the other end. Without dims, along the "
          "flattened tensor.");
    m.def("repeat", &repeat, "input"_a, "repeats"_a, "The tensor side by side, repeats[i] times along axis i.");
    m.def("tile", &tile, "input"_a, "dims"_a, "repeat(), but fewer numbers than axes count from the last axis.");
    m.def("repeat_interleave", &interleave, "input"_a, "repeats"_a, "dim"_a = nb::none(),
          "Every element several times in a row along dim; without dim, of the flattened tensor.");
    tensor.def("flip", [](const Tensor& t, nb::args dims) { return flip(t, dims_of(dims)); })
        .def("roll", roll_, "shifts"_a, "dims"_a = nb::none())
        .def("repeat", [](const Tensor& t, nb::args repeats) { return repeat(t, dims_of(repeats)); })
        .def("tile", [](const Tensor& t, nb::args repeats) { return tile(t, dims_of(repeats)); })
        .def("repeat_interleave", &interleave, "repeats"_a, "dim"_a = nb::none());
}

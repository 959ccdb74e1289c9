#include <nanobind/stl/string_view.h>

#include "bind.h"
#include "vkml/ops/recurrent/recurrent.h"

VKML_PYTHON(recurrent) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "_recurrent",
        [](std::string_view kind, const Tensor& gates, const Tensor& weight, const std::optional<Tensor>& bias,
           const Tensor& hidden, const std::optional<Tensor>& cell, bool reverse) {
            const Recurrence out = recurrent(parse_recurrent_cell(kind), gates, weight, bias.value_or(Tensor{}), hidden,
                                             cell.value_or(Tensor{}), reverse);
            return std::pair(out.hidden, out.cell.defined() ? std::optional(out.cell) : std::nullopt);
        },
        "kind"_a, "gates"_a, "weight"_a, "bias"_a, "hidden"_a, "cell"_a = nb::none(), "reverse"_a = false, ReleaseGil(),
        "A recurrent layer over a sequence whose input products are given: what nn.LSTM runs.");
}

#include "bind.h"
#include "vkml/ops/select/select.h"

namespace vkml::python {
namespace {

using Bound = std::optional<Operand>;

Arg arg(const Operand& o) { return o.is_tensor() ? Arg(o.tensor) : Arg(o.scalar); }
std::optional<Arg> bound(const Bound& b) { return b ? std::optional<Arg>(arg(*b)) : std::nullopt; }

Tensor clamp_both(const Tensor& x, const Bound& min, const Bound& max) { return clamp(x, bound(min), bound(max)); }
Tensor fill_where(const Tensor& x, const Tensor& mask, const Operand& value) {
    return masked_fill(x, mask, arg(value));
}
Tensor at_least(const Tensor& x, const Operand& min) { return clamp_min(x, arg(min)); }
Tensor at_most(const Tensor& x, const Operand& max) { return clamp_max(x, arg(max)); }

}  // namespace
}  // namespace vkml::python

VKML_PYTHON(select) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "where", [](const Tensor& cond, const Operand& x, const Operand& y) { return where(cond, arg(x), arg(y)); },
        "cond"_a, "x"_a, "y"_a, ReleaseGil(), R"(x where cond is true, y elsewhere; the three broadcast.

Examples
--------
>>> vkml.where(vkml.tensor([True, False]), vkml.tensor([1., 2.]), 0)
tensor([1., 0.])
)");
    m.def("masked_fill", &fill_where, "input"_a, "mask"_a, "value"_a, ReleaseGil(),
          R"(A copy with value where mask is true; the two broadcast.

Examples
--------
>>> vkml.masked_fill(vkml.tensor([1., 2.]), vkml.tensor([True, False]), -1)
tensor([-1.,  2.])
)");
    m.def("clamp", &clamp_both, "input"_a, "min"_a = nb::none(), "max"_a = nb::none(), ReleaseGil(),
          R"(Held between min and max, tensors or numbers; NaN stays.

Examples
--------
>>> vkml.clamp(vkml.tensor([-1., 0.5, 2.]), 0, 1)
tensor([0.0000, 0.5000, 1.0000])
)");
    m.def("clip", &clamp_both, "input"_a, "min"_a = nb::none(), "max"_a = nb::none(), ReleaseGil(),
          R"(Another name of clamp.

Examples
--------
>>> vkml.clip(vkml.tensor([-1., 0.5, 2.]), max=1)
tensor([-1.0000,  0.5000,  1.0000])
)");
    m.def("clamp_min", &at_least, "input"_a, "min"_a, ReleaseGil(), R"(Held at min or above.

Examples
--------
>>> vkml.clamp_min(vkml.tensor([-1., 0.5, 2.]), 0)
tensor([0.0000, 0.5000, 2.0000])
)");
    m.def("clamp_max", &at_most, "input"_a, "max"_a, ReleaseGil(), R"(Held at max or below.

Examples
--------
>>> vkml.clamp_max(vkml.tensor([-1., 0.5, 2.]), 1)
tensor([-1.0000,  0.5000,  1.0000])
)");
    tensor.def(
        "where", [](const Tensor& x, const Tensor& cond, const Operand& y) { return where(cond, x, arg(y)); },
        "condition"_a, "other"_a, ReleaseGil());
    tensor.def("masked_fill", &fill_where, "mask"_a, "value"_a, ReleaseGil());
    tensor.def("clamp", &clamp_both, "min"_a = nb::none(), "max"_a = nb::none(), ReleaseGil());
    tensor.def("clamp_min", &at_least, "min"_a, ReleaseGil());
    tensor.def("clamp_max", &at_most, "max"_a, ReleaseGil());
    tensor.def("clip", &clamp_both, "min"_a = nb::none(), "max"_a = nb::none(), ReleaseGil(), "Another name of clamp.");
    for (const char* name : {"clamp_", "clip_"})
        tensor.def(
            name,
            [](nb::object self, const Bound& min, const Bound& max) {
                clamp_(nb::cast<const Tensor&>(self), bound(min), bound(max));
                return self;
            },
            "min"_a = nb::none(), "max"_a = nb::none(), "As clamp, in place.");
    tensor.def(
        "masked_fill_",
        [](nb::object self, const Tensor& mask, const Operand& value) {
            masked_fill_(nb::cast<const Tensor&>(self), mask, arg(value));
            return self;
        },
        "mask"_a, "value"_a);
}

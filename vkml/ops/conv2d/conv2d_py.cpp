#include <nanobind/stl/string_view.h>

#include "int2_caster.h"
#include "vkml/ops/conv2d/conv2d.h"
#include "vkml/ops/conv2d/conv2d_choice.h"
#include "vkml/ops/conv2d/conv2d_launch.h"

VKML_PYTHON(conv2d) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "conv2d",
        [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, Int2 stride, Int2 padding,
           Int2 dilation, std::int64_t groups) {
            return conv2d(input, weight, bias.value_or(Tensor{}), stride, padding, dilation, groups);
        },
        "input"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = Int2(1), "padding"_a = Int2(0),
        "dilation"_a = Int2(1), "groups"_a = 1, ReleaseGil(), R"(2-d cross-correlation with zero padding.

Examples
--------
>>> vkml.conv2d(vkml.arange(9.0).reshape(1, 1, 3, 3), vkml.ones(1, 1, 2, 2))
tensor([[[[ 8., 12.],
          [20., 24.]]]])
)");
    m.def(
        "conv2d",
        [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, Int2 stride,
           std::string_view padding, Int2 dilation, std::int64_t groups) {
            return conv2d(input, weight, bias.value_or(Tensor{}), stride, padding, dilation, groups);
        },
        "input"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = Int2(1), "padding"_a = "valid",
        "dilation"_a = Int2(1), "groups"_a = 1, ReleaseGil(),
        "padding ``\"valid\"``: none; ``\"same\"``: as much as keeps the size, for stride 1.");
    m.def(
        "conv_transpose2d",
        [](const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, Int2 stride, Int2 padding,
           Int2 output_padding, std::int64_t groups, Int2 dilation) {
            return conv_transpose2d(input, weight, bias.value_or(Tensor{}), stride, padding, output_padding, groups,
                                    dilation);
        },
        "input"_a, "weight"_a, "bias"_a = nb::none(), "stride"_a = Int2(1), "padding"_a = Int2(0),
        "output_padding"_a = Int2(0), "groups"_a = 1, "dilation"_a = Int2(1), ReleaseGil(),
        R"(The gradient of conv2d with regard to its input, as an operator: weight is (C, C_out / groups, kh, kw).

Examples
--------
>>> vkml.conv_transpose2d(vkml.ones(1, 1, 1, 2), vkml.ones(1, 1, 2, 2), stride=2)
tensor([[[[1., 1., 1., 1.],
          [1., 1., 1., 1.]]]])
)");
    m.def(
        "_force_conv2d", [](const std::string& name) { conv::force_path(name); }, "name"_a = "",
        "For tests: the path of conv2d to take where it can be, by name; empty gives the choice back.");
    m.def("_conv2d_paths", [] {
        std::vector<std::string> names;
        for (const std::string_view name : conv::path_names()) names.emplace_back(name);
        return names;
    });
    m.def(
        "_conv2d_channels_last",
        [](const Tensor& image, std::int64_t groups) { return conv::channels_last(image, groups, 0, image.size(0)); },
        "image"_a, "groups"_a, "For tests: the copy of a 16-bit image that cooperative matrices read.");
}

#include "bind.h"
#include "vkml/ops/batch_norm/batch_norm.h"

VKML_PYTHON(batch_norm) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "batch_norm",
        [](const Tensor& input, const Tensor& mean, const Tensor& variance, const std::optional<Tensor>& weight,
           const std::optional<Tensor>& bias, double eps) {
            return batch_norm(input, mean, variance, weight.value_or(Tensor{}), bias.value_or(Tensor{}), eps);
        },
        "input"_a, "mean"_a, "variance"_a, "weight"_a = nb::none(), "bias"_a = nb::none(), "eps"_a = 1e-5, ReleaseGil(),
        R"(``(x - mean) / sqrt(variance + eps) * weight + bias`` with channels on axis 1. The statistics are
arguments: nothing is updated.

Examples
--------
>>> x = vkml.tensor([[1., 10.], [3., 30.]])
>>> vkml.batch_norm(x, vkml.tensor([2., 20.]), vkml.tensor([1., 100.]), eps=0.0)
tensor([[-1., -1.],
        [ 1.,  1.]])
)");
    m.def(
        "batch_norm_train",
        [](const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps) {
            const BatchNormTrained r = batch_norm_train(input, weight.value_or(Tensor{}), bias.value_or(Tensor{}), eps);
            return std::tuple(r.y, r.mean, r.variance);
        },
        "input"_a, "weight"_a = nb::none(), "bias"_a = nb::none(), "eps"_a = 1e-5, ReleaseGil(),
        R"((result, mean, biased variance): batch_norm with the batch's own statistics, through which the
gradient flows.

Examples
--------
>>> y, mean, variance = vkml.batch_norm_train(vkml.tensor([[1., 10.], [3., 30.]]), eps=0.0)
>>> y, mean, variance
(tensor([[-1., -1.],
        [ 1.,  1.]]), tensor([ 2., 20.]), tensor([  1., 100.]))
)");
}

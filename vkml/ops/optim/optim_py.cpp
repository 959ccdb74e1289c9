#include <nanobind/stl/vector.h>

#include "bind.h"
#include "vkml/ops/optim/optim.h"

namespace vkml::python {
namespace {

OptimRule rule_named(const std::string& word) {
    constexpr std::pair<std::string_view, OptimRule> rules[] = {
        {"sgd", OptimRule::sgd},         {"adam", OptimRule::adam}, {"adamw", OptimRule::adamw},
        {"rmsprop", OptimRule::rmsprop}, {"lion", OptimRule::lion}, {"adagrad", OptimRule::adagrad},
        {"nadam", OptimRule::nadam}};
    for (const auto& [name, rule] : rules)
        if (name == word) return rule;
    fail<ShapeError>("optimizer: rule: expected sgd, adam, adamw, rmsprop, lion, adagrad or nadam, got ", word);
}

}  // namespace
}  // namespace vkml::python

VKML_PYTHON(optim) {
    using namespace vkml;
    using namespace vkml::python;
    nb::class_<MultiTensorOptimizer>(m, "_MultiTensorOptimizer",
                                     "The engine of vkml.optim: one step over many tensors in two dispatches.")
        .def(
            "__init__",
            [](MultiTensorOptimizer* self, const std::vector<Tensor>& parameters, const std::string& rule, double lr,
               double weight_decay, double beta1, double beta2, double eps, double dampening, bool nesterov,
               bool centered) {
                new (self) MultiTensorOptimizer(
                    parameters, {rule_named(rule), lr, weight_decay, beta1, beta2, eps, dampening, nesterov, centered});
            },
            "parameters"_a, "rule"_a, "lr"_a, "weight_decay"_a = 0.0, "beta1"_a = 0.0, "beta2"_a = 0.0, "eps"_a = 0.0,
            "dampening"_a = 0.0, "nesterov"_a = false, "centered"_a = false)
        .def(
            "set",
            [](MultiTensorOptimizer& self, double lr, double weight_decay, double beta1, double beta2, double eps,
               double dampening) {
                self.set({OptimRule::sgd, lr, weight_decay, beta1, beta2, eps, dampening, false, false});
            },
            "lr"_a, "weight_decay"_a = 0.0, "beta1"_a = 0.0, "beta2"_a = 0.0, "eps"_a = 0.0, "dampening"_a = 0.0)
        .def(
            "step",
            [](MultiTensorOptimizer& self, const nb::sequence& gradients, const std::optional<Tensor>& skip) {
                std::vector<Tensor> given;
                for (nb::handle g : gradients) given.push_back(g.is_none() ? Tensor{} : nb::cast<Tensor>(g));
                GilRelease released;
                self.step(given, skip.value_or(Tensor{}));
            },
            "gradients"_a, "skip"_a = nb::none(),
            "One gradient per parameter, None where there is none. No step where `skip` is not 0.")
        .def("states", &MultiTensorOptimizer::states, "index"_a)
        .def_prop_ro("progress", &MultiTensorOptimizer::progress);
}

#include "bind.h"
#include "vkml/ops/losses/losses.h"

namespace {

using namespace vkml;
using namespace vkml::python;
using MaybeTensor = std::optional<Tensor>;

using PairLoss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

/// The word, or the enum whose str() is it.
Reduction word(const char* op, nb::handle reduction) {
    const auto text = nb::cast<std::string>(nb::str(reduction));
    return parse_reduction(op, text);
}

void bind_pair(nb::module_& m, const char* name, PairLoss f, const char* text) {
    m.def(
        name,
        [name, f](const Tensor& input, const Tensor& target, nb::object reduction) {
            return f(input, target, word(name, reduction));
        },
        "input"_a, "target"_a, "reduction"_a = "mean", text);
}

}  // namespace

VKML_PYTHON(losses) {
    m.def(
        "cross_entropy",
        [](const Tensor& input, const Tensor& target, nb::object weight, std::int64_t ignore_index,
           nb::object reduction, double smoothing) {
            // Older calls give the reduction third.
            Tensor* classes = nullptr;
            if (!weight.is_none() && !nb::try_cast<Tensor*>(weight, classes)) std::swap(weight, reduction);
            const Reduction how = word("cross_entropy", reduction);
            return cross_entropy(input, target, classes ? *classes : Tensor{}, ignore_index, how, smoothing);
        },
        "input"_a, "target"_a, "weight"_a = nb::none(), "ignore_index"_a = -100, "reduction"_a = "mean",
        "label_smoothing"_a = 0.0,
        R"(Cross entropy of logits (N, C, ...) against int64 or int32 classes, or against probabilities of the
same shape.

Examples
--------
>>> vkml.cross_entropy(vkml.tensor([[2., 0., 0.], [0., 3., 0.]]), vkml.tensor([0, 2]))
tensor(1.6672)
)");
    m.def(
        "nll_loss",
        [](const Tensor& input, const Tensor& target, const MaybeTensor& weight, std::int64_t ignore_index,
           nb::object reduction) {
            return nll_loss(input, target, weight.value_or(Tensor{}), ignore_index, word("nll_loss", reduction));
        },
        "input"_a, "target"_a, "weight"_a = nb::none(), "ignore_index"_a = -100, "reduction"_a = "mean",
        R"(Minus the log-probability of each target class.

Examples
--------
>>> vkml.nll_loss(vkml.log(vkml.tensor([[0.5, 0.5], [0.25, 0.75]])), vkml.tensor([0, 1]), reduction="none")
tensor([0.6931, 0.2877])
)");
    bind_pair(m, "mse_loss", &mse_loss, R"((input - target)^2.

Examples
--------
>>> vkml.mse_loss(vkml.tensor([1., 3.]), vkml.tensor([0., 5.]))
tensor(2.5000)
)");
    bind_pair(m, "l1_loss", &l1_loss, R"(|input - target|.

Examples
--------
>>> vkml.l1_loss(vkml.tensor([1., 3.]), vkml.tensor([0., 5.]))
tensor(1.5000)
)");
    m.def(
        "smooth_l1_loss",
        [](const Tensor& input, const Tensor& target, nb::object reduction, double beta) {
            return smooth_l1_loss(input, target, word("smooth_l1_loss", reduction), beta);
        },
        "input"_a, "target"_a, "reduction"_a = "mean", "beta"_a = 1.0, R"(huber_loss / beta.

Examples
--------
>>> vkml.smooth_l1_loss(vkml.tensor([0.5, 3.]), vkml.zeros(2), reduction="none")
tensor([0.1250, 2.5000])
)");
    m.def(
        "huber_loss",
        [](const Tensor& input, const Tensor& target, nb::object reduction, double delta) {
            return huber_loss(input, target, word("huber_loss", reduction), delta);
        },
        "input"_a, "target"_a, "reduction"_a = "mean", "delta"_a = 1.0, R"(Squared near 0, linear beyond delta.

Examples
--------
>>> vkml.huber_loss(vkml.tensor([0.5, 3.]), vkml.zeros(2), reduction="none")
tensor([0.1250, 2.5000])
)");
    m.def(
        "kl_div",
        [](const Tensor& input, const Tensor& target, nb::object reduction, bool log_target) {
            return kl_div(input, target, word("kl_div", reduction), log_target);
        },
        "input"_a, "target"_a, "reduction"_a = "mean", "log_target"_a = false,
        R"(Kullback-Leibler divergence; input holds log-probabilities. Also takes reduction="batchmean".

Examples
--------
>>> p = vkml.tensor([0.5, 0.5])
>>> vkml.kl_div(vkml.log(vkml.tensor([0.25, 0.75])), p, reduction="sum")
tensor(0.1438)
)");
    m.def(
        "binary_cross_entropy",
        [](const Tensor& input, const Tensor& target, const MaybeTensor& weight, nb::object reduction) {
            return binary_cross_entropy(input, target, weight.value_or(Tensor{}),
                                        word("binary_cross_entropy", reduction));
        },
        "input"_a, "target"_a, "weight"_a = nb::none(), "reduction"_a = "mean",
        R"(Binary cross entropy of probabilities.

Examples
--------
>>> vkml.binary_cross_entropy(vkml.tensor([0.5, 0.25]), vkml.tensor([1., 0.]), reduction="none")
tensor([0.6931, 0.2877])
)");
    m.def(
        "binary_cross_entropy_with_logits",
        [](const Tensor& input, const Tensor& target, const MaybeTensor& weight, nb::object reduction,
           const MaybeTensor& pos_weight) {
            return binary_cross_entropy_with_logits(input, target, weight.value_or(Tensor{}),
                                                    word("binary_cross_entropy_with_logits", reduction),
                                                    pos_weight.value_or(Tensor{}));
        },
        "input"_a, "target"_a, "weight"_a = nb::none(), "reduction"_a = "mean", "pos_weight"_a = nb::none(),
        R"(Binary cross entropy of logits, in its stable form.

Examples
--------
>>> vkml.binary_cross_entropy_with_logits(vkml.tensor([0., 2.]), vkml.tensor([1., 0.]), reduction="none")
tensor([0.6931, 2.1269])
)");
}

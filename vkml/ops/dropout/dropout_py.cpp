#include "bind.h"
#include "vkml/ops/dropout/dropout.h"
#include "vkml/ops/random/draw_py.h"

VKML_PYTHON(dropout) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "dropout",
        [](const Tensor& input, double p, Seed seed, nb::int_ offset, bool training) {
            if (!training) return dropout(input, p, 0, 0, false);
            return seed ? dropout(input, p, word(*seed), word(offset)) : dropout(input, p);
        },
        "input"_a, "p"_a, "seed"_a = nb::none(), "offset"_a = 0, "training"_a = true,
        R"(Zeroes elements with probability p and scales the others by 1 / (1 - p). The mask is a pure function
of (seed, offset);
without a seed, the default generator's next draw.

Examples
--------
>>> vkml.dropout(vkml.ones(6), 0.5, seed=1)
tensor([2., 2., 0., 2., 0., 0.])
)");
    m.def(
        "_dropout_slice",
        [](const Tensor& input, double p, nb::int_ seed, nb::int_ offset, nb::int_ first) {
            return dropout_slice(input, p, {word(seed), word(offset)}, word(first));
        },
        "input"_a, "p"_a, "seed"_a, "offset"_a, "first"_a);
}

#include "bind.h"
#include "vkml/ops/random/draw_py.h"
#include "vkml/ops/random/random.h"
#include "vkml/runtime/registry.h"

VKML_PYTHON(random) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "manual_seed", [](nb::int_ seed) { manual_seed(word(seed)); }, "seed"_a,
        "Restarts the default generator: its draws are (seed, 0), (seed, 1), ...");
    m.def(
        "rand",
        [](const Dims& shape, Seed seed, nb::int_ offset, std::optional<DType> dtype, std::optional<Device> device) {
            return rand(shape, draw_of(seed, offset), dtype.value_or(default_dtype()),
                        device.value_or(default_device()));
        },
        "shape"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(), "device"_a = nb::none(),
        "Uniform numbers in [0, 1): a pure function of (seed, offset, index). Without a seed, the default generator's "
        "next draw.");
    m.def(
        "randn",
        [](const Dims& shape, Seed seed, nb::int_ offset, std::optional<DType> dtype, std::optional<Device> device) {
            return randn(shape, draw_of(seed, offset), dtype.value_or(default_dtype()),
                         device.value_or(default_device()));
        },
        "shape"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(), "device"_a = nb::none(),
        "Standard normal numbers: a pure function of (seed, offset, index).");
    m.def(
        "randint",
        [](std::int64_t low, std::int64_t high, const Dims& shape, Seed seed, nb::int_ offset,
           std::optional<DType> dtype, std::optional<Device> device) {
            return randint(low, high, shape, draw_of(seed, offset), dtype.value_or(DType::i64),
                           device.value_or(default_device()));
        },
        "low"_a, "high"_a, "shape"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(),
        "device"_a = nb::none(), "Integers in [low, high): a pure function of (seed, offset, index).");
    m.def(
        "randperm",
        [](std::int64_t n, Seed seed, nb::int_ offset, std::optional<Device> device) {
            return randperm(n, draw_of(seed, offset), device.value_or(default_device()));
        },
        "n"_a, "seed"_a = nb::none(), "offset"_a = 0, "device"_a = nb::none(),
        "The numbers 0 .. n - 1 in random order, int64.");
}

#include "bind.h"
#include "vkml/ops/random/draw_py.h"
#include "vkml/ops/random/random.h"
#include "vkml/runtime/registry.h"

namespace vkml::python {
namespace {

using Float = Tensor (*)(const Shape&, Draw, DType, Device);

Tensor leaf(Tensor t, bool requires_grad) {
    if (requires_grad) t.requires_grad_(true);
    return t;
}

/// `rand(shape, ...)`, and before it `rand(2, 3, ...)`: two ints in a row are extents, never an extent and a seed.
void bind_float(nb::module_& m, const char* name, Float f, const char* separate, const char* doc) {
    m.def(
        name,
        [f](nb::handle first, nb::handle second, const nb::args& more, Seed seed, nb::int_ offset,
            std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
            if (!PyIndex_Check(first.ptr()) || !PyIndex_Check(second.ptr())) throw nb::next_overload();
            Dims shape{nb::cast<std::int64_t>(first), nb::cast<std::int64_t>(second)};
            for (nb::handle extent : more) shape.push_back(nb::cast<std::int64_t>(extent));
            return leaf(
                f(shape, draw_of(seed, offset), dtype.value_or(default_dtype()), device.value_or(default_device())),
                requires_grad);
        },
        nb::arg("first"), nb::arg("second"), "more"_a, nb::kw_only(), "seed"_a = nb::none(), "offset"_a = 0,
        "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false, nb::sig(separate));
    m.def(
        name,
        [f](const Dims& shape, Seed seed, nb::int_ offset, std::optional<DType> dtype, std::optional<Device> device,
            bool requires_grad) {
            return leaf(
                f(shape, draw_of(seed, offset), dtype.value_or(default_dtype()), device.value_or(default_device())),
                requires_grad);
        },
        "shape"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(), "device"_a = nb::none(),
        "requires_grad"_a = false, doc);
}

void bind_like(nb::module_& m, const char* name, Float f, const char* doc) {
    m.def(
        name,
        [f, name](const Tensor& input, Seed seed, nb::int_ offset, std::optional<DType> dtype,
                  std::optional<Device> device, bool requires_grad) {
            const DType wanted = dtype.value_or(input.dtype());
            check<DTypeError>(is_floating(wanted), name, ": dtype: expected a floating-point dtype, got ", wanted);
            return leaf(f(input.shape(), draw_of(seed, offset), wanted, device.value_or(input.device())),
                        requires_grad);
        },
        "input"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(), "device"_a = nb::none(),
        "requires_grad"_a = false, doc);
}

}  // namespace
}  // namespace vkml::python

VKML_PYTHON(random) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "manual_seed", [](nb::int_ seed) { manual_seed(word(seed)); }, "seed"_a,
        R"(Restarts the default generator: its draws are (seed, 0), (seed, 1), ...

Every program starts as after manual_seed(0), so two runs draw the same numbers; for others in each run, seed it with
some that differ: vkml.manual_seed(time.time_ns()). Every draw without a seed of its own comes from it, on every device:
rand, randn, randint, randperm, multinomial, dropout, and the weights of new layers. DataLoader and data.split have
seeds of their own (0).

Examples
--------
>>> vkml.manual_seed(7)
>>> a = vkml.rand(3)
>>> vkml.manual_seed(7)
>>> vkml.equal(a, vkml.rand(3)).all().item()
True
)");
    bind_float(m, "rand", &rand,
               "def rand(first: int, second: int, *more: int, seed: int | None = None, offset: int = 0, dtype: dtype | "
               "str | type | None = None, device: device | str | None = None, requires_grad: bool = False) -> Tensor",
               "Uniform numbers in [0, 1): a pure function of (seed, offset, index). Without a seed, the default "
               "generator's next draw.\n\nExamples\n--------\n>>> vkml.rand(2, 3).shape\n(2, 3)\n"
               ">>> vkml.rand((2, 3), seed=1).equal(vkml.rand((2, 3), seed=1)).all().item()\nTrue");
    bind_float(
        m, "randn", &randn,
        "def randn(first: int, second: int, *more: int, seed: int | None = None, offset: int = 0, dtype: dtype | "
        "str | type | None = None, device: device | str | None = None, requires_grad: bool = False) -> Tensor",
        "Standard normal numbers: a pure function of (seed, offset, index).\n\nExamples\n--------\n"
        ">>> vkml.randn(2, 3).shape\n(2, 3)");
    bind_like(m, "rand_like", &rand,
              "Uniform numbers in [0, 1) with the shape, dtype and device of another tensor.\n\nExamples\n--------\n"
              ">>> vkml.rand_like(vkml.zeros(2, 3)).shape\n(2, 3)");
    bind_like(m, "randn_like", &randn,
              "Standard normal numbers with the shape, dtype and device of another tensor.\n\nExamples\n--------\n"
              ">>> vkml.randn_like(vkml.zeros(2, 3)).shape\n(2, 3)");
    m.def(
        "randint",
        [](std::int64_t low, std::int64_t high, const Dims& shape, Seed seed, nb::int_ offset,
           std::optional<DType> dtype, std::optional<Device> device) {
            return randint(low, high, shape, draw_of(seed, offset), dtype.value_or(DType::i64),
                           device.value_or(default_device()));
        },
        "low"_a, "high"_a, "shape"_a, "seed"_a = nb::none(), "offset"_a = 0, "dtype"_a = nb::none(),
        "device"_a = nb::none(), R"(Integers in [low, high): a pure function of (seed, offset, index).

Examples
--------
>>> vkml.randint(0, 10, (4,), seed=1)
tensor([8, 6, 2, 7])
)");
    m.def(
        "randperm",
        [](std::int64_t n, Seed seed, nb::int_ offset, std::optional<Device> device) {
            return randperm(n, draw_of(seed, offset), device.value_or(default_device()));
        },
        "n"_a, "seed"_a = nb::none(), "offset"_a = 0, "device"_a = nb::none(),
        R"(The numbers 0 .. n - 1 in random order, int64.

Examples
--------
>>> vkml.sort(vkml.randperm(4, seed=1))[0]
tensor([0, 1, 2, 3])
)");
}

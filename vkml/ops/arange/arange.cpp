#include "vkml/ops/arange/arange.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "vkml/core/error.h"
#include "vkml/ops/arange/arange_kernel.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/fill/fill.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128;

Tensor launch(const Kernel& kernel, ArangeArgs args, DType dtype, Device device) {
    check<DTypeError>(dtype != DType::boolean, "arange: dtype: expected an integer or floating-point dtype, got ",
                      dtype);
    Tensor out = empty({static_cast<std::int64_t>(args.count)}, dtype, device);
    if (args.count == 0) return out;
    args.output = out.address();
    stream(device).launch(kernel, dtype, Spec{kThreads}, linear_grid(ceil_div(args.count, kThreads)), args, {}, {out});
    return out;
}

Tensor spaced(double start, double stop, double step, std::int64_t count, std::int64_t turn, DType dtype,
              Device device) {
    // A device without f64 gets the host's numbers.
    const bool here = !device.is_cpu() && !stream(device).limits().f64;
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    const ArangeArgs args{
        0, static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(turn), bits(start), bits(stop), bits(step)};
    return to_device(launch(arange_float_kernel, args, dtype, here ? Device{} : device), device);
}

Tensor spaced(std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t count, std::int64_t turn,
              DType dtype, Device device) {
    const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    return launch(arange_kernel, {0, bits(count), bits(turn), bits(start), bits(stop), bits(step)}, dtype, device);
}

std::int64_t integer(const Scalar& s) {
    return s.kind == Scalar::Kind::floating ? static_cast<std::int64_t>(s.floating) : s.integer;
}

bool all_integers(const Scalar& a, const Scalar& b, const Scalar& c) {
    return a.kind != Scalar::Kind::floating && b.kind != Scalar::Kind::floating && c.kind != Scalar::Kind::floating;
}

std::int64_t count_of(const Scalar& start, const Scalar& stop, const Scalar& step) {
    if (all_integers(start, stop, step)) {
        // Distances may exceed int64: 2^64 - 1 fits the unsigned type.
        const auto low = static_cast<std::uint64_t>(start.integer), high = static_cast<std::uint64_t>(stop.integer);
        const auto width = static_cast<std::uint64_t>(step.integer);
        const std::uint64_t distance = step.integer > 0 ? high - low : low - high,
                            stride = step.integer > 0 ? width : 0 - width;
        return distance == 0 ? 0 : static_cast<std::int64_t>((distance - 1) / stride + 1);
    }
    return static_cast<std::int64_t>(std::ceil((stop.floating - start.floating) / step.floating));
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<DType> dtype, Device device) {
    check(std::isfinite(start.floating) && std::isfinite(stop.floating) && std::isfinite(step.floating),
          "arange: expected finite numbers, got ", start.floating, ", ", stop.floating, ", ", step.floating);
    check(step.floating != 0, "arange: step: expected a number other than 0, got 0");
    const bool integers = all_integers(start, stop, step);
    const bool ordered = integers ? (step.integer > 0 ? start.integer <= stop.integer : start.integer >= stop.integer)
                                  : (stop.floating - start.floating) / step.floating >= 0;
    check(ordered, "arange: step: expected a step from ", start.floating, " towards ", stop.floating, ", got ",
          step.floating);
    const DType type = dtype.value_or(integers ? DType::i64 : default_dtype());
    const std::int64_t count = count_of(start, stop, step);
    if (is_integer(type)) return spaced(integer(start), 0, integer(step), count, count, type, device);
    return spaced(start.floating, 0.0, step.floating, count, count, type, device);
}

Tensor linspace(const Scalar& start, const Scalar& stop, std::int64_t steps, DType dtype, Device device) {
    check(steps >= 0, "linspace: steps: expected a count >= 0, got ", steps);
    const double step = steps > 1 ? (stop.floating - start.floating) / static_cast<double>(steps - 1) : 0.0;
    if (is_floating(dtype)) return spaced(start.floating, stop.floating, step, steps, (steps + 1) / 2, dtype, device);
    // Integers truncate towards 0, as torch; few are asked for, so the host makes them.
    std::vector<std::byte> values(static_cast<std::size_t>(steps) * itemsize(dtype));
    for (std::int64_t i = 0; i < steps; i++) {
        const double value = i < (steps + 1) / 2 ? start.floating + static_cast<double>(i) * step
                                                 : stop.floating - static_cast<double>(steps - 1 - i) * step;
        const std::uint64_t bits = Scalar(value).bits(dtype);
        std::memcpy(values.data() + static_cast<std::size_t>(i) * itemsize(dtype), &bits, itemsize(dtype));
    }
    return from_host(values.data(), {steps}, dtype, device);
}

Tensor eye(std::int64_t n, std::int64_t m, DType dtype, Device device) {
    check(n >= 0 && m >= 0, "eye: expected sizes >= 0, got (", n, ", ", m, ")");
    const Tensor out = full({n, m}, Scalar(0), dtype, device);
    if (const std::int64_t length = std::min(n, m); length > 0)
        fill_into(out.view(Layout({length}, {m + 1}, 0)), Scalar(1));
    return out;
}

}  // namespace vkml

#include "vkml/ops/random/random.h"

#include <limits>

#include "vkml/core/error.h"
#include "vkml/ops/random/random_kernel.h"
#include "vkml/ops/sort/sort.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128, kPer = 4;  // the latter of rand and randn in random.slang

Tensor draw_into_new(const Kernel& kernel, const Shape& shape, Draw draw, DType dtype, Device device, std::int64_t low,
                     std::uint64_t range, std::uint32_t per) {
    Tensor out = empty(shape, dtype, device);
    if (out.numel() == 0) return out;
    const RandomArgs args{.output = out.address(),
                          .count = static_cast<std::uint64_t>(out.numel()),
                          .seed = 0,
                          .offset = 0,
                          .low = low,
                          .range = range};
    stream(device).launch_drawn(kernel, dtype, Spec{kThreads},
                                linear_grid(ceil_div(args.count, std::uint64_t{kThreads} * per)), args, draw, {},
                                {out});
    return out;
}

void check_floating(const char* op, DType dtype) {
    check<DTypeError>(is_floating(dtype), op, ": dtype: expected a floating-point dtype, got ", dtype);
}

bool fits(std::int64_t value, DType dtype) {
    if (dtype == DType::i64) return true;
    if (dtype == DType::u8) return value >= 0 && value <= 255;
    const int bits = static_cast<int>(itemsize(dtype)) * 8 - 1;
    return value >= -(std::int64_t{1} << bits) && value < (std::int64_t{1} << bits);
}

}  // namespace

Tensor rand(const Shape& shape, Draw draw, DType dtype, Device device) {
    check_floating("rand", dtype);
    return draw_into_new(rand_kernel, shape, draw, dtype, device, 0, 0, kPer);
}

Tensor randn(const Shape& shape, Draw draw, DType dtype, Device device) {
    check_floating("randn", dtype);
    return draw_into_new(randn_kernel, shape, draw, dtype, device, 0, 0, kPer);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Draw draw, DType dtype, Device device) {
    check<DTypeError>(is_integer(dtype), "randint: dtype: expected an integer dtype, got ", dtype);
    check(low < high, "randint: expected low < high, got ", low, " and ", high);
    check(fits(low, dtype) && fits(high - 1, dtype), "randint: expected a range that ", dtype, " holds, got [", low,
          ", ", high, ")");
    const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return draw_into_new(randint_kernel, shape, draw, dtype, device, low, range, 1);
}

Tensor randperm(std::int64_t n, Draw draw, Device device) {
    check(n >= 0, "randperm: n: expected a number >= 0, got ", n);
    // Two equal keys of 64 bits are as good as impossible, and the stable sort settles even those.
    constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                           kHigh = std::numeric_limits<std::int64_t>::max();
    return argsort(randint(kLow, kHigh, {n}, draw, DType::i64, device));
}

}  // namespace vkml

#include "vkml/ops/fill/fill.h"

#include <algorithm>

#include "vkml/autograd/node.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/copy/copy_kernel.h"
#include "vkml/ops/fill/fill.spv.h"
#include "vkml/ops/fill/fill_args.h"
#include "vkml/runtime/cpu/parallel.h"
#include "vkml/runtime/grid.h"
#include "vkml/runtime/registry.h"

namespace vkml {
namespace {

constexpr std::uint32_t kThreads = 128, kInFlight = 4;  // the latter of fill.slang, in sixteens of bytes

/// An element's bits in every place of eight bytes.
std::uint64_t repeated(std::uint64_t bits, std::size_t size) {
    if (size == 8) return bits;
    bits &= (std::uint64_t{1} << (8 * size)) - 1;
    for (std::size_t width = size; width < 8; width *= 2) bits |= bits << (8 * width);
    return bits;
}

template <class T>
void fill_elements(const FillArgs& args) {
    T* target = reinterpret_cast<T*>(args.target);
    const T value = static_cast<T>(args.pattern);
    cpu::parallel_for(static_cast<std::int64_t>(args.count), cpu::kGrain,
                      [&](std::int64_t begin, std::int64_t end) { std::fill(target + begin, target + end, value); });
}

void fill_cpu(const void* raw, DType dtype, const Spec&, Grid) {
    const auto& args = *static_cast<const FillArgs*>(raw);
    switch (itemsize(dtype)) {
        case 1:
            return fill_elements<std::uint8_t>(args);
        case 2:
            return fill_elements<std::uint16_t>(args);
        case 4:
            return fill_elements<std::uint32_t>(args);
        default:
            return fill_elements<std::uint64_t>(args);
    }
}

constexpr Kernel fill_kernel{"fill", spv::fill, fill_cpu};

}  // namespace

Tensor full(const Shape& shape, const Scalar& value, DType dtype, Device device) {
    Tensor out = empty(shape, dtype, device);
    if (out.numel() == 0) return out;
    const std::size_t size = itemsize(dtype);
    const FillArgs args{out.address(), static_cast<std::uint64_t>(out.numel()), repeated(value.bits(dtype), size)};
    const std::uint64_t vectors = ceil_div(args.count * size, 16);
    stream(device).launch(fill_kernel, storage_dtype(size), Spec{kThreads},
                          linear_grid(ceil_div(vectors, std::uint64_t{kThreads} * kInFlight)), args, {}, {out});
    return out;
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
    return full(shape, Scalar(value), dtype, device);
}

void fill_into(const Tensor& target, const Scalar& value) {
    copy_into(target, full({}, value, target.dtype(), target.device()));
}

}  // namespace vkml

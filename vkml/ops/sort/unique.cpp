#include "vkml/ops/sort/unique.h"

#include <cstring>
#include <vector>

#include "vkml/autograd/grad_mode.h"
#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"
#include "vkml/ops/shape/shape.h"
#include "vkml/ops/sort/sort.h"

namespace vkml {
namespace {

/// Equal as values: the zeros are, NaNs are not.
bool same_value(const std::byte* a, const std::byte* b, DType dtype) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a, itemsize(dtype));
    std::memcpy(&y, b, itemsize(dtype));
    if (!is_floating(dtype)) return x == y;
    const std::uint64_t infinity = dtype == DType::f64   ? 0x7ff0000000000000u
                                   : dtype == DType::f32 ? 0x7f800000u
                                   : dtype == DType::f16 ? 0x7c00u
                                                         : 0x7f80u;
    const std::uint64_t magnitude = (std::uint64_t{1} << (itemsize(dtype) * 8 - 1)) - 1;
    if ((x & magnitude) > infinity) return false;
    return x == y || ((x | y) & magnitude) == 0;
}

}  // namespace

Unique unique(const Tensor& input) {
    NoGrad off;
    const Sorted sorted = sort(reshape(input, {-1}));
    const auto count = static_cast<std::size_t>(input.numel());
    const std::size_t item = itemsize(input.dtype());
    std::vector<std::byte> values(count * item);
    std::vector<std::int64_t> order(count), inverse(count), first, counts;
    to_host(sorted.values, values.data());
    to_host(sorted.indices, order.data());
    for (std::size_t i = 0; i < count; i++) {
        if (i == 0 || !same_value(values.data() + (i - 1) * item, values.data() + i * item, input.dtype())) {
            first.push_back(static_cast<std::int64_t>(i));
            counts.push_back(0);
        }
        counts.back()++;
        inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
    }
    const Shape found{static_cast<std::int64_t>(first.size())};
    const Device device = input.device();
    return {index_select(sorted.values, 0, from_host(first.data(), found, DType::i64, device)),
            from_host(inverse.data(), input.shape(), DType::i64, device),
            from_host(counts.data(), found, DType::i64, device)};
}

}  // namespace vkml

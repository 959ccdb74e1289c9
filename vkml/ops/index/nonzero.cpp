#include <cstring>
#include <vector>

#include "vkml/ops/copy/copy.h"
#include "vkml/ops/index/index.h"

namespace vkml {
namespace {

/// Floats but for their sign; anything else as it is.
bool is_nonzero(const std::byte* element, DType dtype) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element, itemsize(dtype));
    if (is_floating(dtype)) bits &= (std::uint64_t{1} << (itemsize(dtype) * 8 - 1)) - 1;
    return bits != 0;
}

}  // namespace

Tensor nonzero(const Tensor& input) {
    const int rank = input.ndim();
    std::vector<std::byte> values(input.nbytes());
    to_host(input, values.data());
    std::vector<std::int64_t> places;
    std::int64_t index[kMaxRank] = {}, count = 0;
    const std::size_t item = itemsize(input.dtype());
    for (std::int64_t i = 0; i < input.numel(); i++) {
        if (is_nonzero(values.data() + static_cast<std::size_t>(i) * item, input.dtype())) {
            places.insert(places.end(), index, index + rank);
            count++;
        }
        for (int axis = rank - 1; axis >= 0; axis--) {
            if (++index[axis] < input.shape()[axis]) break;
            index[axis] = 0;
        }
    }
    return from_host(places.data(), {count, rank}, DType::i64, input.device());
}

}  // namespace vkml

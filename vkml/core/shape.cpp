#include "vkml/core/shape.h"

#include <algorithm>

#include "vkml/core/error.h"

namespace vkml {

Dims::Dims(std::span<const std::int64_t> values) {
    check(values.size() <= kMaxRank, "shape: expected rank <= 8, got rank ", values.size());
    std::ranges::copy(values, values_);
    size_ = static_cast<int>(values.size());
}

Dims Dims::filled(int rank, std::int64_t value) {
    Dims out;
    for (int i = 0; i < rank; i++) out.push_back(value);
    return out;
}

void Dims::push_back(std::int64_t value) { insert(size_, value); }

void Dims::insert(int position, std::int64_t value) {
    check(size_ < kMaxRank, "shape: expected rank <= 8, got rank 9");
    std::copy_backward(values_ + position, values_ + size_, values_ + size_ + 1);
    values_[position] = value;
    size_++;
}

void Dims::erase(int position) {
    std::copy(values_ + position + 1, values_ + size_, values_ + position);
    size_--;
}

std::string to_string(const Dims& dims) {
    std::string out = "(";
    for (int i = 0; i < dims.size(); i++) {
        if (i > 0) out += ", ";
        out += std::to_string(dims[i]);
    }
    return out + (dims.size() == 1 ? ",)" : ")");
}

std::int64_t numel(const Shape& shape) {
    // A zero extent makes the rest irrelevant, however large.
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    std::int64_t n = 1;
    for (std::int64_t extent : shape)
        check(!__builtin_mul_overflow(n, extent, &n), "shape: expected fewer than 2^63 elements, got ", shape);
    return n;
}

int wrap_dim(std::string_view op, std::int64_t dim, int rank) {
    const int extent = std::max(rank, 1);
    if (dim < -extent || dim >= extent)
        fail<IndexError>(op, ": expected dim in [", -extent, ", ", extent - 1, "], got ", dim);
    return static_cast<int>(dim < 0 ? dim + extent : dim);
}

Dims wrap_dims(std::string_view op, const Dims& dims, int rank) {
    Dims out;
    if (dims.empty()) {
        for (int i = 0; i < rank; i++) out.push_back(i);
        return out;
    }
    for (std::int64_t dim : dims) {
        const int axis = wrap_dim(op, dim, rank);
        check(std::ranges::find(out, axis) == out.end(), op, ": expected distinct axes, got ", dims);
        out.push_back(axis);
    }
    return out;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
    const Shape& longer = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    Shape out = longer;
    const int lead = longer.size() - shorter.size();
    for (int i = 0; i < shorter.size(); i++) {
        const std::int64_t x = longer[lead + i], y = shorter[i];
        check(x == y || x == 1 || y == 1, op, ": expected shapes that broadcast, got ", a, " and ", b);
        out[lead + i] = x == 1 ? y : x;
    }
    return out;
}

}  // namespace vkml

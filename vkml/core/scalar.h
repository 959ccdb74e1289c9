#pragma once
#include <cstdint>

#include "vkml/core/dtype.h"

namespace vkml {

/// A number of the kind it was given in, so that integers keep their 64 bits.
struct Scalar {
    enum class Kind : std::uint8_t { boolean, integer, floating } kind = Kind::floating;
    double floating = 0;
    std::int64_t integer = 0;

    Scalar(double value) : kind(Kind::floating), floating(value) {}
    Scalar(std::int64_t value) : kind(Kind::integer), floating(static_cast<double>(value)), integer(value) {}
    Scalar(int value) : Scalar(static_cast<std::int64_t>(value)) {}
    Scalar(bool value) : kind(Kind::boolean), floating(value), integer(value) {}

    /// The value's bits as an element of `dtype`, rounded and saturated as a cast would.
    std::uint64_t bits(DType dtype) const;
    /// The dtype a tensor of it gets: the default float, int64 or bool.
    DType natural_dtype() const;
};

}  // namespace vkml

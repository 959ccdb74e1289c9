#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "vkml/core/error.h"

namespace vkml {

/// A pair of sizes, (height, width); one integer stands for both.
struct Int2 {
    std::int64_t h, w;

    Int2(std::int64_t both) : h(both), w(both) {}
    Int2(int both) : h(both), w(both) {}
    Int2(std::int64_t h, std::int64_t w) : h(h), w(w) {}
    friend bool operator==(Int2, Int2) = default;
};

inline std::string to_string(Int2 pair) { return "(" + std::to_string(pair.h) + ", " + std::to_string(pair.w) + ")"; }

/// For what is multiplied later: products of two sizes below 2^31 do not overflow.
inline void check_below_2_31(std::string_view op, std::string_view what, Int2 pair) {
    constexpr std::int64_t limit = std::int64_t{1} << 31;
    check(pair.h < limit && pair.w < limit, op, ": ", what, ": expected sizes below 2^31, got ", to_string(pair));
}

}  // namespace vkml

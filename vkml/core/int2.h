#pragma once
#include <cstdint>
#include <string>

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

}  // namespace vkml

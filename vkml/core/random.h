#pragma once
#include <array>
#include <cstdint>

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
/// Element i of a draw is a pure function of (seed, offset, i). Mirrored in runtime/slang/philox.slang.
namespace vkml {

using PhiloxWords = std::array<std::uint32_t, 4>;

/// The four words of a counter (c0..c3) under a key (k0, k1).
constexpr PhiloxWords philox(PhiloxWords c, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; round++) {
        const std::uint64_t p = std::uint64_t{0xD2511F53u} * c[0], q = std::uint64_t{0xCD9E8D57u} * c[2];
        c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(q),
             static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return c;
}

/// Where a draw starts: both numbers are taken modulo 2^64, and draws of different offsets never overlap.
struct Draw {
    /// Draws of the default generator are taken anew by each replay of a capture; `folded` ones go through fold().
    enum class Origin : std::uint8_t { given, generated, folded };

    std::uint64_t seed = 0, offset = 0;
    Origin origin = Origin::given;
    friend bool operator==(Draw, Draw) = default;
};

/// The words of element `index` of a draw.
constexpr PhiloxWords philox(Draw draw, std::uint64_t index) {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(draw.offset), static_cast<std::uint32_t>(draw.offset >> 32)},
                  {static_cast<std::uint32_t>(draw.seed), static_cast<std::uint32_t>(draw.seed >> 32)});
}

/// A draw of offset 0, for kernels that have room for one word only.
constexpr Draw fold(Draw draw) {
    const PhiloxWords w = philox(draw, ~std::uint64_t{0});
    const bool given = draw.origin == Draw::Origin::given;
    return {std::uint64_t{w[1]} << 32 | w[0], 0, given ? Draw::Origin::given : Draw::Origin::folded};
}

/// Sets the process-wide default generator: its draws are (seed, 0), (seed, 1), ... It starts with seed 0.
void manual_seed(std::uint64_t seed);
/// The default generator's next draw. Any thread may call.
Draw next_draw();

}  // namespace vkml

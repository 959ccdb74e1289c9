#pragma once
#include <cstdint>

#include "vkml/core/random.h"

/// Draws on the CPU, several elements at a time; core/random.h has the definition.
namespace vkml::cpu {

/// Word 0 of the elements first .. first + n - 1.
void philox_words(Draw draw, std::uint64_t first, std::int64_t n, std::uint32_t* word0);
/// Standard normal numbers from words 0 and 1, with the operations and the bits of randn in ops/random/random.slang.
void philox_normal(Draw draw, std::uint64_t first, std::int64_t n, float* out);

}  // namespace vkml::cpu

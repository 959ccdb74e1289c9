#pragma once
#include <cstdint>

/// 16-bit floats to f32 and back, vectorised, one thread: rounding as in core/float16.h. In-place is not possible.
namespace vkml::cpu {

void f32_from_f16(const std::uint16_t* in, float* out, std::int64_t n);
void f32_from_bf16(const std::uint16_t* in, float* out, std::int64_t n);
void f16_from_f32(const float* in, std::uint16_t* out, std::int64_t n);
void bf16_from_f32(const float* in, std::uint16_t* out, std::int64_t n);

}  // namespace vkml::cpu

// The numbers of the operators, as a specialization constant carries them. Included by C++ and by Slang.
#ifdef __cplusplus
#pragma once
#include <cstdint>
#define VKML_ENUM(name) enum class name : std::uint32_t
namespace vkml {
#else
#define VKML_ENUM(name) enum name : uint
#endif

VKML_ENUM(UnaryOp){
#define VKML_UNARY(name, takes, value, keeps, gradient) name,
#include "vkml/ops/elementwise/unary.def"
#undef VKML_UNARY
};

VKML_ENUM(BinaryOp){
#define VKML_BINARY(name, takes, value, a_reads, gradient_a, b_reads, gradient_b) name,
#include "vkml/ops/elementwise/binary.def"
#undef VKML_BINARY
};

VKML_ENUM(CompareOp){
#define VKML_COMPARE(name, takes, value) name,
#include "vkml/ops/elementwise/compare.def"
#undef VKML_COMPARE
};

#ifdef __cplusplus
}  // namespace vkml
#endif

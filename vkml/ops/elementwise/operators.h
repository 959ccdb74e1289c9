#pragma once
#include "vkml/ops/elementwise/elementwise.h"

/// C++'s operators on tensors and numbers. Comparisons have names only: == between handles would be taken for identity.
namespace vkml {

inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator~(const Tensor& x) { return bitwise_not(x); }

template <class Number>
concept NumberLike = std::is_arithmetic_v<Number> || std::is_same_v<Number, Scalar>;

#define VKML_OPERATOR(symbol, function)                                                        \
    inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); } \
    template <NumberLike Number>                                                               \
    Tensor operator symbol(const Tensor& a, Number b) {                                        \
        return function(a, Arg(b));                                                            \
    }                                                                                          \
    template <NumberLike Number>                                                               \
    Tensor operator symbol(Number a, const Tensor& b) {                                        \
        return function(Arg(a), b);                                                            \
    }
VKML_OPERATOR(+, add)
VKML_OPERATOR(-, sub)
VKML_OPERATOR(*, mul)
VKML_OPERATOR(/, div)
VKML_OPERATOR(%, remainder)
VKML_OPERATOR(&, bitwise_and)
VKML_OPERATOR(|, bitwise_or)
VKML_OPERATOR(^, bitwise_xor)
#undef VKML_OPERATOR

#define VKML_OPERATOR(symbol, function) \
    inline const Tensor& operator symbol(const Tensor& target, const Arg& other) { return function(target, other); }
VKML_OPERATOR(+=, add_)
VKML_OPERATOR(-=, sub_)
VKML_OPERATOR(*=, mul_)
VKML_OPERATOR(/=, div_)
#undef VKML_OPERATOR

}  // namespace vkml

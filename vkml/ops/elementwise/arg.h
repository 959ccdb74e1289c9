#pragma once
#include <type_traits>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// An operand of an elementwise operator: a tensor, or a number that costs none. Refers to the tensor: for arguments
/// only.
class Arg {
  public:
    Arg(const Tensor& tensor) : tensor_(&tensor) {}
    Arg(const Scalar& number) : number_(number) {}
    template <class Number>
        requires std::is_arithmetic_v<Number>
    Arg(Number number) : number_(scalar(number)) {}

    bool is_tensor() const { return tensor_ != nullptr; }
    const Tensor& tensor() const { return tensor_ ? *tensor_ : none(); }
    const Scalar& number() const { return number_; }

  private:
    template <class Number>
    static Scalar scalar(Number n) {
        if constexpr (std::is_same_v<Number, bool>)
            return Scalar(n);
        else if constexpr (std::is_integral_v<Number>)
            return Scalar(static_cast<std::int64_t>(n));
        else
            return Scalar(static_cast<double>(n));
    }
    static const Tensor& none();

    const Tensor* tensor_ = nullptr;
    Scalar number_{0.0};
};

/// The dtype an operator on a and b computes in: tensors with axes, then rank-0 tensors, then numbers; a lower rank
/// changes the result only if its kind (bool < integer < float) is higher. Two numbers: ShapeError.
DType promoted_dtype(std::string_view op, const Arg& a, const Arg& b);

}  // namespace vkml

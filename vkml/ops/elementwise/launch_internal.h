#pragma once
#include <cstdint>

#include "vkml/core/scalar.h"
#include "vkml/core/tensor.h"
#include "vkml/ops/elementwise/elementwise_args.h"
#include "vkml/ops/elementwise/operator_ids_kernel.h"
#include "vkml/runtime/kernel.h"

/// What the three elementwise kernels share on the host: how operands are described, and the launch.
namespace vkml {

static_assert(sizeof(ElementwiseArgs) == kMaxPushConstants);

/// How a kernel reads an operand: a specialization constant.
enum class OperandForm : std::uint32_t {
    packed,  // the output's shape, aligned to 16 bytes
    packed_narrow,
    strided,
    number,  // in the arguments
};

void unary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void binary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void compare_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// One launch: out = op(a, b). An undefined operand is the number p.
struct Elementwise {
    const Kernel& kernel;
    std::uint32_t op;
    DType dtype;  // of the operands
    const Tensor* a;
    const Tensor* b;
    const Tensor* out;           // packed, of the broadcast shape
    std::uint64_t p = 0, q = 0;  // bits in the kernel's value type
    std::uint32_t site = 0;
};
void launch_elementwise(const Elementwise& work);

/// A number's bits as a kernel's value type sees them: 16-bit floats compute in f32, integers below 64 bits in i32.
std::uint64_t value_bits(const Scalar& number, DType dtype);

/// The dtypes a line of a .def file takes.
enum class Takes : std::uint8_t { real, floating, number, any, integer };

/// Throws DTypeError unless `dtype` is one the operator takes. Gives the dtype it computes in: the default float for
/// `real` operators on integers.
DType check_takes(std::string_view op, Takes takes, DType dtype);

/// True if the target of an in-place operator can be the launch's output: packed, and no operand overlaps it but
/// elementwise.
bool can_write_directly(const Tensor& target, const Tensor* a, const Tensor* b);

}  // namespace vkml

#pragma once
#include "vkml/runtime/kernel.h"

namespace vkml {

/// A code beyond those of FaultCode: weights that nothing can be drawn from.
inline constexpr FaultCode kIllegalWeights{3};  // value: the row; limit: how many weights had to be above 0

/// Raises what a kernel reported: IndexError for an index out of range, Error for an integer division by zero,
/// ShapeError for weights that cannot be drawn from.
[[noreturn]] void throw_fault(const Fault& fault);

/// A CPU kernel's side of the protocol: the first report wins. Callable from several threads.
void report_fault(Address fault, FaultCode code, std::uint32_t site, std::int64_t value, std::int64_t limit);

}  // namespace vkml

#pragma once
#include "vkml/runtime/kernel.h"

namespace vkml {

/// Raises what a kernel reported: IndexError for an index out of range, Error for an integer division by zero.
[[noreturn]] void throw_fault(const Fault& fault);

/// A CPU kernel's side of the protocol: the first report wins. Callable from several threads.
void report_fault(Address fault, FaultCode code, std::uint32_t site, std::int64_t value, std::int64_t limit);

}  // namespace vkml

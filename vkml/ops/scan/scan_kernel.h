#pragma once
#include "vkml/ops/scan/scan.spv.h"
#include "vkml/ops/scan/scan_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void scan_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// A workgroup per part of a row, or an invocation: the second where rows lie beside each other.
inline constexpr Kernel scan_rows{"scan_rows", spv::scan_rows, scan_cpu};
inline constexpr Kernel scan_columns{"scan_columns", spv::scan_columns, scan_cpu};

static_assert(sizeof(ScanArgs) <= kMaxPushConstants);

}  // namespace vkml

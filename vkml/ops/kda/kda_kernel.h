#pragma once
#include "vkml/ops/kda/kda_boundary.spv.h"
#include "vkml/ops/kda/kda_combine.spv.h"
#include "vkml/ops/kda/kda_decode.spv.h"
#include "vkml/ops/kda/kda_epilogue.spv.h"
#include "vkml/ops/kda/kda_epilogue_wide.spv.h"
#include "vkml/ops/kda/kda_prepare.spv.h"
#include "vkml/ops/kda/kda_prepare_wide.spv.h"
#include "vkml/ops/kda/kda_reverse.spv.h"
#include "vkml/ops/kda/kda_reverse_wide.spv.h"
#include "vkml/ops/kda/kda_scan.spv.h"
#include "vkml/ops/kda/kda_scan_wide.spv.h"
#include "vkml/runtime/kernel.h"

namespace vkml::kda {

void prepare_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void scan_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void boundary_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void reverse_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void epilogue_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void decode_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel prepare_kernel{"kda_prepare", spv::kda_prepare, prepare_cpu};
inline constexpr Kernel prepare_wide_kernel{"kda_prepare", spv::kda_prepare_wide, prepare_cpu};
inline constexpr Kernel scan_wide_kernel{"kda_scan", spv::kda_scan_wide, scan_cpu};
inline constexpr Kernel scan_deep_kernel{"kda_scan", spv::kda_scan_deep, scan_cpu};
inline constexpr Kernel scan_half_kernel{"kda_scan", spv::kda_scan_half, scan_cpu};
inline constexpr Kernel scan_narrow_kernel{"kda_scan", spv::kda_scan_narrow, scan_cpu};
// Only on devices with few heads to run, never on the CPU.
inline constexpr Kernel map_half_kernel{"kda_scan", spv::kda_scan_map_half};
inline constexpr Kernel map_narrow_kernel{"kda_scan", spv::kda_scan_map_narrow};
inline constexpr Kernel segment_half_kernel{"kda_scan", spv::kda_scan_segment_half};
inline constexpr Kernel segment_narrow_kernel{"kda_scan", spv::kda_scan_segment_narrow};
inline constexpr Kernel combine_kernel{"kda_combine", spv::kda_combine};
inline constexpr Kernel boundary_kernel{"kda_boundary", spv::kda_boundary, boundary_cpu};
inline constexpr Kernel reverse_wide_kernel{"kda_reverse", spv::kda_reverse_wide, reverse_cpu};
inline constexpr Kernel reverse_half_kernel{"kda_reverse", spv::kda_reverse_half, reverse_cpu};
inline constexpr Kernel reverse_narrow_kernel{"kda_reverse", spv::kda_reverse_narrow, reverse_cpu};
inline constexpr Kernel epilogue_kernel{"kda_epilogue", spv::kda_epilogue, epilogue_cpu};
inline constexpr Kernel epilogue_deep_kernel{"kda_epilogue", spv::kda_epilogue_deep, epilogue_cpu};
inline constexpr Kernel epilogue_wide_kernel{"kda_epilogue", spv::kda_epilogue_wide, epilogue_cpu};
inline constexpr Kernel decode_kernel{"kda_decode", spv::kda_decode, decode_cpu};

/// Positions of the specialization constants: innermost strides, then what only the CPU takes this way.
enum KdaSpec : int {
    kQueryStep,
    kKeyStep,
    kValueStep,
    kDecayStep,
    kOutputStep,
    kK,
    kV,
    kH,
    kHV,
    kTiles,
    kKeep,
    kPad,
    kScaleLow,
    kScaleHigh
};
/// Of decode: strides of the state in place of what it does not need.
enum KdaDecodeSpec : int { kStateRow = kTiles, kStateColumn = kKeep, kAligned = kOutputStep };

}  // namespace vkml::kda

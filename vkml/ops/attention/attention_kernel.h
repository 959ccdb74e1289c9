#pragma once
#include "vkml/ops/attention/attention.spv.h"
#include "vkml/ops/attention/attention_args.h"
#include "vkml/ops/attention/attention_backward.spv.h"
#include "vkml/ops/attention/attention_coopmat.spv.h"
#include "vkml/ops/attention/attention_coopmat_backward.spv.h"
#include "vkml/ops/attention/attention_delta.spv.h"
#include "vkml/ops/attention/attention_merge.spv.h"
#include "vkml/ops/attention/attention_split.spv.h"
#include "vkml/runtime/kernel.h"

namespace vkml::attention {

static_assert(sizeof(AttentionArgs) <= kMaxPushConstants && sizeof(AttentionBackwardArgs) <= kMaxPushConstants);

void forward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void delta_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel wide_kernel{"attention", spv::attention_wide};
/// Up to 64 and up to 128 columns, on cooperative matrices: their sums become operands in registers, or through shared
/// memory; and with the matrices emulated.
inline constexpr Kernel coopmat_kernels[] = {{"attention_coopmat", spv::attention_coopmat_64},
                                             {"attention_coopmat", spv::attention_coopmat_128}};
inline constexpr Kernel shared_kernels[] = {{"attention_coopmat", spv::attention_coopmat_64_shared},
                                            {"attention_coopmat", spv::attention_coopmat_128_shared}};
inline constexpr Kernel emulated_kernels[] = {{"attention_coopmat", spv::attention_coopmat_64_emulated},
                                              {"attention_coopmat", spv::attention_coopmat_128_emulated}};
inline constexpr Kernel narrow_kernel{"attention", spv::attention_narrow, forward_cpu};
inline constexpr Kernel split_kernel{"attention_split", spv::attention_split};
inline constexpr Kernel merge_kernel{"attention_merge", spv::attention_merge};
inline constexpr Kernel delta_kernel{"attention_delta", spv::attention_delta, delta_cpu};
inline constexpr Kernel query_wide_kernel{"attention_query", spv::attention_query_wide};
inline constexpr Kernel query_narrow_kernel{"attention_query", spv::attention_query_narrow};
inline constexpr Kernel key_wide_kernel{"attention_key", spv::attention_key_wide};
inline constexpr Kernel key_narrow_kernel{"attention_key", spv::attention_key_narrow};
/// A gradient's tile of rows on matrices, up to 64 and up to 128 columns.
inline constexpr Kernel coopmat_query_kernels[] = {{"attention_coopmat_query", spv::attention_coopmat_query_64},
                                                   {"attention_coopmat_query", spv::attention_coopmat_query_128}};
inline constexpr Kernel coopmat_key_kernels[] = {{"attention_coopmat_key", spv::attention_coopmat_key_64},
                                                 {"attention_coopmat_key", spv::attention_coopmat_key_128}};
inline constexpr Kernel shared_query_kernels[] = {{"attention_coopmat_query", spv::attention_coopmat_query_64_shared},
                                                  {"attention_coopmat_query", spv::attention_coopmat_query_128_shared}};
inline constexpr Kernel shared_key_kernels[] = {{"attention_coopmat_key", spv::attention_coopmat_key_64_shared},
                                                {"attention_coopmat_key", spv::attention_coopmat_key_128_shared}};
inline constexpr Kernel emulated_query_kernels[] = {
    {"attention_coopmat_query", spv::attention_coopmat_query_64_emulated},
    {"attention_coopmat_query", spv::attention_coopmat_query_128_emulated}};
inline constexpr Kernel emulated_key_kernels[] = {{"attention_coopmat_key", spv::attention_coopmat_key_64_emulated},
                                                  {"attention_coopmat_key", spv::attention_coopmat_key_128_emulated}};
/// All three gradients at once. CPU only.
inline constexpr Kernel backward_kernel{"attention_backward", {}, backward_cpu};

/// Positions of the specialization constants.
enum AttentionSpec : int {
    kE,
    kEv,
    kQueryRow,
    kKeyRow,
    kValueRow,
    kMaskColumn,
    kGroup,
    kMask,
    kCausal,
    kThreshold,  // of dropout; 0: none
    kDropScale,  // bits of a float
    kVectors,    // 16-byte loads
    kScaleLow,   // of the double, for f64 and the CPU
    kScaleHigh,
    kRowsAtOnce,              // rows of a workgroup of the split form
    kQueryLow = kRowsAtOnce,  // of the CPU's backward: where the gradient of query goes, or 0
    kQueryHigh
};
enum MaskKind : std::uint32_t { kNoMask, kBoolMask, kElementMask, kFloatMask };

}  // namespace vkml::attention

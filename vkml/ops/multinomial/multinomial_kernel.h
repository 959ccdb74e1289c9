#pragma once
#include "vkml/ops/multinomial/multinomial.spv.h"
#include "vkml/ops/multinomial/multinomial_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void multinomial_shares_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multinomial_pick_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multinomial_keys_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void multinomial_check_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel shares_kernel{"multinomial_shares", spv::multinomial_shares, multinomial_shares_cpu};
inline constexpr Kernel pick_kernel{"multinomial_pick", spv::multinomial_pick, multinomial_pick_cpu};
inline constexpr Kernel keys_kernel{"multinomial_keys", spv::multinomial_keys, multinomial_keys_cpu};
inline constexpr Kernel check_kernel{"multinomial_check", spv::multinomial_check, multinomial_check_cpu};
static_assert(sizeof(MultinomialArgs) <= kMaxPushConstants);

}  // namespace vkml

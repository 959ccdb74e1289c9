#pragma once
#include "vkml/ops/random/random.spv.h"
#include "vkml/ops/random/random_args.h"
#include "vkml/runtime/kernel.h"

namespace vkml {

void rand_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void randn_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void randint_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel rand_kernel{"rand", spv::rand, rand_cpu};
inline constexpr Kernel randn_kernel{"randn", spv::randn, randn_cpu};
inline constexpr Kernel randint_kernel{"randint", spv::randint, randint_cpu};

}  // namespace vkml

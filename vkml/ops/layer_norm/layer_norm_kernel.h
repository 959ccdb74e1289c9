#pragma once
#include "vkml/ops/layer_norm/layer_norm.spv.h"
#include "vkml/ops/layer_norm/layer_norm_backward.spv.h"
#include "vkml/ops/layer_norm/layer_norm_parameters.spv.h"
#include "vkml/ops/layer_norm/norm_kernel.h"

namespace vkml {

inline constexpr Kernel layer_norm_resident{"layer_norm_resident", spv::layer_norm_resident, norm_cpu};
inline constexpr Kernel layer_norm_looped{"layer_norm_looped", spv::layer_norm_looped};
inline constexpr Kernel layer_norm_partial{"layer_norm_partial", spv::layer_norm_partial};
inline constexpr Kernel layer_norm_apply{"layer_norm_apply", spv::layer_norm_apply};
inline constexpr Kernel layer_norm_wide{"layer_norm_wide", spv::layer_norm_wide};
inline constexpr Kernel layer_norm_wide_small{"layer_norm_wide", spv::layer_norm_wide_small};
inline constexpr RowWide layer_norm_wide_modules[] = {{&layer_norm_wide, 512, 27, 5},
                                                      {&layer_norm_wide_small, 1024, 12, 1}};
inline constexpr Kernel layer_norm_backward_resident{"layer_norm_backward_resident", spv::layer_norm_backward_resident,
                                                     norm_backward_cpu};
inline constexpr Kernel layer_norm_backward_looped{"layer_norm_backward_looped", spv::layer_norm_backward_looped};
inline constexpr Kernel layer_norm_backward_partial{"layer_norm_backward_partial", spv::layer_norm_backward_partial};
inline constexpr Kernel layer_norm_backward_apply{"layer_norm_backward_apply", spv::layer_norm_backward_apply};
inline constexpr Kernel layer_norm_parameters_partial{"layer_norm_parameters_partial",
                                                      spv::layer_norm_parameters_partial, norm_parameters_partial_cpu};
inline constexpr Kernel layer_norm_parameters_fold{"layer_norm_parameters_fold", spv::layer_norm_parameters_fold,
                                                   norm_parameters_fold_cpu};

inline constexpr NormKernels layer_norm_kernels{
    "layer_norm",
    kCentred,
    {"layer_norm.rows", &layer_norm_resident, &layer_norm_looped, &layer_norm_partial, &layer_norm_apply,
     layer_norm_wide_modules},
    {"layer_norm_backward.rows", &layer_norm_backward_resident, &layer_norm_backward_looped,
     &layer_norm_backward_partial, &layer_norm_backward_apply},
    &layer_norm_parameters_partial,
    &layer_norm_parameters_fold};

}  // namespace vkml

#pragma once
#include "vkml/ops/layer_norm/norm_kernel.h"
#include "vkml/ops/rms_norm/rms_norm.spv.h"
#include "vkml/ops/rms_norm/rms_norm_backward.spv.h"
#include "vkml/ops/rms_norm/rms_norm_parameters.spv.h"

namespace vkml {

inline constexpr Kernel rms_norm_resident{"rms_norm_resident", spv::rms_norm_resident, norm_cpu};
inline constexpr Kernel rms_norm_looped{"rms_norm_looped", spv::rms_norm_looped};
inline constexpr Kernel rms_norm_partial{"rms_norm_partial", spv::rms_norm_partial};
inline constexpr Kernel rms_norm_apply{"rms_norm_apply", spv::rms_norm_apply};
inline constexpr Kernel rms_norm_wide{"rms_norm_wide", spv::rms_norm_wide};
inline constexpr Kernel rms_norm_wide_small{"rms_norm_wide", spv::rms_norm_wide_small};
inline constexpr RowWide rms_norm_wide_modules[] = {{&rms_norm_wide, 512, 27, 5}, {&rms_norm_wide_small, 1024, 12, 1}};
inline constexpr Kernel rms_norm_backward_resident{"rms_norm_backward_resident", spv::rms_norm_backward_resident,
                                                   norm_backward_cpu};
inline constexpr Kernel rms_norm_backward_looped{"rms_norm_backward_looped", spv::rms_norm_backward_looped};
inline constexpr Kernel rms_norm_backward_partial{"rms_norm_backward_partial", spv::rms_norm_backward_partial};
inline constexpr Kernel rms_norm_backward_apply{"rms_norm_backward_apply", spv::rms_norm_backward_apply};
inline constexpr Kernel rms_norm_parameters_partial{"rms_norm_parameters_partial", spv::rms_norm_parameters_partial,
                                                    norm_parameters_partial_cpu};
inline constexpr Kernel rms_norm_parameters_fold{"rms_norm_parameters_fold", spv::rms_norm_parameters_fold,
                                                 norm_parameters_fold_cpu};

inline constexpr NormKernels rms_norm_kernels{
    "rms_norm",
    kNotCentred,
    {"rms_norm.rows", &rms_norm_resident, &rms_norm_looped, &rms_norm_partial, &rms_norm_apply, rms_norm_wide_modules},
    {"rms_norm_backward.rows", &rms_norm_backward_resident, &rms_norm_backward_looped, &rms_norm_backward_partial,
     &rms_norm_backward_apply},
    &rms_norm_parameters_partial,
    &rms_norm_parameters_fold};

}  // namespace vkml

#pragma once
#include "vkml/ops/softmax/softmax.spv.h"
#include "vkml/ops/softmax/softmax_backward.spv.h"
#include "vkml/runtime/kernel.h"
#include "vkml/runtime/rows.h"

namespace vkml {

void softmax_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void softmax_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

inline constexpr Kernel softmax_resident{"softmax_resident", spv::softmax_resident, softmax_cpu};
inline constexpr Kernel softmax_looped{"softmax_looped", spv::softmax_looped};
inline constexpr Kernel softmax_partial{"softmax_partial", spv::softmax_partial};
inline constexpr Kernel softmax_apply{"softmax_apply", spv::softmax_apply};
inline constexpr Kernel softmax_wide{"softmax_wide", spv::softmax_wide};
inline constexpr Kernel softmax_wide_small{"softmax_wide", spv::softmax_wide_small};
inline constexpr RowWide softmax_wide_modules[] = {{&softmax_wide, 512, 26, 5}, {&softmax_wide_small, 1024, 12, 1}};
inline constexpr RowKernels softmax_rows{"softmax.rows",   &softmax_resident, &softmax_looped,
                                         &softmax_partial, &softmax_apply,    softmax_wide_modules};

// y is null: the maximum goes to `mean` and the log of the sum to `rstd`.
inline constexpr Kernel softmax_statistics_resident{"softmax_resident", spv::softmax_statistics_resident, softmax_cpu};
inline constexpr Kernel softmax_statistics_looped{"softmax_looped", spv::softmax_statistics_looped};
inline constexpr Kernel softmax_statistics_partial{"softmax_partial", spv::softmax_statistics_partial};
inline constexpr Kernel softmax_statistics_apply{"softmax_apply", spv::softmax_statistics_apply};
inline constexpr RowKernels softmax_statistics_rows{"softmax_statistics.rows",
                                                    &softmax_statistics_resident,
                                                    &softmax_statistics_looped,
                                                    &softmax_statistics_partial,
                                                    &softmax_statistics_apply,
                                                    {},
                                                    true};

inline constexpr Kernel softmax_backward_resident{"softmax_backward_resident", spv::softmax_backward_resident,
                                                  softmax_backward_cpu};
inline constexpr Kernel softmax_backward_looped{"softmax_backward_looped", spv::softmax_backward_looped};
inline constexpr Kernel softmax_backward_partial{"softmax_backward_partial", spv::softmax_backward_partial};
inline constexpr Kernel softmax_backward_apply{"softmax_backward_apply", spv::softmax_backward_apply};
inline constexpr RowKernels softmax_backward_rows{"softmax_backward.rows", &softmax_backward_resident,
                                                  &softmax_backward_looped, &softmax_backward_partial,
                                                  &softmax_backward_apply};

}  // namespace vkml

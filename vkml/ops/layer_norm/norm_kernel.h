#pragma once
#include <algorithm>

#include "vkml/runtime/kernel.h"
#include "vkml/runtime/rows.h"

/// What layer_norm and rms_norm share.
namespace vkml {

/// The operator's constant for its CPU functions: rms_norm takes no mean.
enum NormFlag : std::uint32_t { kCentred = 0, kNotCentred = 1 };

void norm_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void norm_backward_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void norm_parameters_partial_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);
void norm_parameters_fold_cpu(const void* args, DType dtype, const Spec& spec, Grid grid);

/// One norm: its kernels and whether it centres.
struct NormKernels {
    std::string_view op;
    NormFlag flag;
    RowKernels forward, backward;
    const Kernel *parameters_partial, *parameters_fold;
};

/// Parts of the rows whose sums become the weight's gradient: from the row count alone, so that the bits are.
inline std::uint32_t parameter_parts(std::uint64_t rows) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rows / 32, 1, 128));
}

/// Result of the forward pass; mean (relative to each row's first element) and rstd are kept if asked for.
struct NormResult {
    Tensor y, mean, rstd;
};
NormResult run_norm(const NormKernels& norm, const Tensor& x, int axes, double eps, const Tensor& weight,
                    const Tensor& bias, bool keep);

/// Gradients that `wanted` asks for: of x, weight, bias.
struct NormGrads {
    Tensor x, weight, bias;
};
NormGrads run_norm_backward(const NormKernels& norm, const Tensor& g, const Tensor& x, int axes, const Tensor& mean,
                            const Tensor& rstd, const Tensor& weight, bool want_x, bool want_weight,
                            const Tensor& bias_like);

/// The same from ordinary operators, for a backward that is itself recorded: the second derivative is theirs.
NormGrads composed_norm_backward(const NormKernels& norm, const Tensor& g, const Tensor& x, int axes, double eps,
                                 const Tensor& weight, bool want_weight, const Tensor& bias_like);

/// Checks of the arguments both operators take.
int check_norm(std::string_view op, const Tensor& x, std::int64_t axes);
void check_norm_parameter(std::string_view op, std::string_view name, const Tensor& x, int axes,
                          const Tensor& parameter);
/// The count of trailing axes that a list of their sizes stands for. Throws ShapeError unless it matches.
std::int64_t axes_of_sizes(std::string_view op, const Tensor& x, const Shape& sizes);

}  // namespace vkml

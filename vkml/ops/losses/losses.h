#pragma once
#include <cstdint>
#include <string_view>

#include "vkml/core/tensor.h"

/// Losses, as PyTorch's. 16-bit inputs are computed in f32 and rounded once. ShapeError for shapes and words that do
/// not fit, DTypeError for dtypes, IndexError at the latest at the next host read for a class out of range.
namespace vkml {

enum class Reduction : std::uint8_t { mean, sum, none, batchmean };
/// "mean", "sum" or "none" (kl_div takes "batchmean" too); anything else is a ShapeError.
Reduction parse_reduction(std::string_view op, std::string_view word);

/// input (N, C), (C) or (N, C, d1, ...): logits. target: int64 or int32 classes without the axis C, or probabilities of
/// input's shape. mean divides by the weights of the targets that count; NaN if none does.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                     std::int64_t ignore_index = -100, Reduction reduction = Reduction::mean,
                     double label_smoothing = 0.0);
/// The same on log-probabilities, with classes only.
Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {}, std::int64_t ignore_index = -100,
                Reduction reduction = Reduction::mean);

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean);
/// huber_loss / beta, and l1_loss for beta 0. beta >= 0.
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                      double beta = 1.0);
/// d^2 / 2 up to |d| = delta, delta (|d| - delta / 2) beyond. delta > 0.
Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean, double delta = 1.0);
/// input holds log-probabilities: target (log(target) - input), 0 where target is 0; exp(target) (target - input) with
/// log_target.
Tensor kl_div(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
              bool log_target = false);
/// Probabilities in [0, 1]; a logarithm counts at least -100.
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::mean);
/// target pos_weight softplus(-x) + (1 - target) softplus(x): both terms positive, nothing cancels.
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                        Reduction reduction = Reduction::mean, const Tensor& pos_weight = {});

}  // namespace vkml

#pragma once
#include "vkml/core/random.h"
#include "vkml/core/tensor.h"

/// Draws of categories: integer arithmetic alone decides, so the same draw gives the same samples on every device.
namespace vkml {

/// Weights are read as float32. int64 indices (samples) or (rows, samples) into weights (n) or (rows, n), each as
/// likely as its share of the row's sum. Without replacement no index comes twice, and they come in the order in which
/// they are drawn (the race of exponential clocks of Efraimidis and Spirakis, "Weighted random sampling with a
/// reservoir", 2006); a single sample is drawn as with replacement. Throws DTypeError unless floating; ShapeError for a
/// rank beyond 2, no or more than 2^24 weights, fewer than 1 sample, more of them than weights without replacement,
/// and, at the next host read, for a row with a negative or non-finite weight or with too few above 0.
Tensor multinomial(const Tensor& weights, std::int64_t samples, bool replacement, Draw draw);

}  // namespace vkml

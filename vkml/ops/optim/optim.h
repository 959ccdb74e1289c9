#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "vkml/core/tensor.h"
#include "vkml/ops/multi_tensor/table.h"

/// One optimisation step over many tensors in two dispatches, however many there are. The same bits on every run.
namespace vkml {

enum class OptimRule : std::uint32_t { sgd, adam, adamw, rmsprop, lion, adagrad, nadam };

/// What a step depends on; names as in PyTorch. sgd: beta1 = momentum, dampening. rmsprop: beta1 = momentum, beta2 =
/// alpha. adagrad: beta1 = lr_decay, dampening = initial_accumulator_value. nadam: dampening = momentum_decay.
struct OptimSettings {
    OptimRule rule = OptimRule::sgd;
    double rate = 1e-3, weight_decay = 0, beta1 = 0, beta2 = 0, eps = 0, dampening = 0;
    bool nesterov = false, centered = false;
};

/// The parameters of one group with their states. Parameters are packed, floating-point, of one dtype and device.
/// States are float32 (float64 for float64 parameters) and start at zero, adagrad's where it says. The settings live in
/// device memory: a captured step follows a rate that set() changes between replays.
class MultiTensorOptimizer {
  public:
    /// Throws ShapeError for no parameters, DTypeError and DeviceError where they differ.
    MultiTensorOptimizer(std::vector<Tensor> parameters, const OptimSettings& settings);

    /// Settings of the next step, except the rule and the flags. Throws ShapeError if momentum comes or goes, for its
    /// state would have to.
    void set(const OptimSettings& settings);
    /// Updates every parameter whose gradient is defined. Gradients have the shape and dtype of their parameters.
    /// Nothing happens, not even the count of steps, if `skip`, an int32 tensor of one element, is defined and not 0.
    void step(const std::vector<Tensor>& gradients, const Tensor& skip = {});

    const std::vector<Tensor>& parameters() const { return parameters_; }
    /// States of parameter i: as many as the rule keeps.
    std::vector<Tensor> states(std::size_t i) const;
    /// One row per parameter: the bias corrections of both betas (of nadam the product of its momenta instead of the
    /// first), the steps made, and what the last step took of them.
    Tensor progress() const { return progress_; }

  private:
    void write_numbers();
    std::vector<Tensor> packed_gradients(const std::vector<Tensor>& given) const;

    OptimSettings settings_;
    std::vector<Tensor> parameters_;
    std::vector<std::array<Tensor, 3>> states_;  // undefined where the rule keeps none
    DType value_;
    Tensor numbers_, progress_;
    TensorTable table_;
};

}  // namespace vkml

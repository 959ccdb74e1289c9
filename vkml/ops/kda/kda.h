#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "vkml/core/tensor.h"

/// Kimi Delta Attention, a linear attention with one decay per key channel. Per value head, with a_t =
/// exp(log_decay_t):
///     S~ = diag(a_t) S;  u_t = beta_t (v_t - S~^T k_t);  S = S~ + k_t u_t^T;  o_t = scale S^T q_t
/// query, key [B, H, T, K]; value [B, HV, T, V]; log_decay [B, HV, T, K]; beta [B, HV, T]; states [B, HV, K, V]. Value
/// head j uses query and key head j / (HV / H). query, key, value share one floating dtype; the others are f32 (f64 if
/// that is f64). Any strides. Throws ShapeError, DTypeError, DeviceError; NotImplementedError for K or V above 256 on
/// Vulkan.
namespace vkml {

/// strict: everything behaves as f32 and is rounded once, at the store. fast: operands of matrix products are rounded
/// to bf16.
enum class KdaPrecision : std::uint8_t { strict, fast };

struct KdaOutput {
    Tensor output;       // [B, HV, T, V]
    Tensor final_state;  // [B, HV, K, V]
    Tensor boundaries;   // [N, B, HV, K, V], the state before each chunk; undefined unless asked for
};

struct KdaGradients {
    Tensor query, key, value, log_decay, beta, initial_state;
};

/// The whole sequence. scale defaults to K^-0.5 and has no gradient; no initial_state means zeros. chunk_size is the
/// spacing of `boundaries` and changes nothing else. Differentiable through output and final_state.
KdaOutput chunk_kda(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay,
                    const Tensor& beta, const Tensor& initial_state = {}, std::optional<double> scale = {},
                    std::int64_t chunk_size = 64, bool retain_boundaries = false,
                    KdaPrecision precision = KdaPrecision::strict);

/// The gradients autograd gives. Starts from `boundaries` where they are given, else runs the states again.
KdaGradients chunk_kda_backward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay,
                                const Tensor& beta, const Tensor& initial_state, const Tensor& grad_output,
                                const Tensor& grad_final_state = {}, const Tensor& boundaries = {},
                                std::optional<double> scale = {}, std::int64_t chunk_size = 64,
                                KdaPrecision precision = KdaPrecision::strict);

/// One token (T = 1) in one dispatch: (output, state after it). update_state writes into `state`, which must be
/// contiguous, and returns it. Has no gradient: throws Error in grad mode if an input requires one.
std::pair<Tensor, Tensor> kda_decode(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& log_decay, const Tensor& beta, const Tensor& state,
                                     std::optional<double> scale = {}, bool update_state = false);

}  // namespace vkml

#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>

#include "vkml/ops/kda/kda.h"
#include "vkml/runtime/kernel.h"

/// What the files of this folder share: checks, extents, and how the work is cut into slabs.
namespace vkml::kda {

inline constexpr std::int64_t kTile = 64;
inline constexpr std::int64_t kMostTokens = 0x7fffffff;
inline constexpr std::int64_t kMostWidth = 256;  // of K and V in the Vulkan kernels

/// Names in messages, and the tensors, in the order of the checks.
struct Inputs {
    const Tensor &query, &key, &value, &log_decay, &beta, &initial_state;
    std::string_view state_name = "initial_state";
};

/// Extents of a checked call.
struct Problem {
    std::int64_t B = 0, H = 0, HV = 0, T = 0, K = 0, V = 0;
    DType dtype = DType::none, wide = DType::none;  // of query; of decay, beta and states
    Device device;
    double scale = 1;
    std::int64_t chunk_size = kTile;

    std::int64_t group() const { return H > 0 ? HV / H : 1; }
    std::int64_t heads() const { return B * HV; }
    std::int64_t tiles() const { return (T + kTile - 1) / kTile; }
    std::int64_t chunks() const { return T == 0 ? 0 : (T - 1) / chunk_size + 1; }
    Shape state_shape() const { return {B, HV, K, V}; }
    Shape value_shape() const { return {B, HV, T, V}; }
    bool empty() const { return B == 0 || HV == 0 || T == 0; }
};

/// Everything kda.md asks before a launch, in its order. grad_output and the rest may be undefined.
Problem check_inputs(std::string_view op, const Inputs& in, std::optional<double> scale, std::int64_t chunk_size);
/// The further arguments of chunk_kda_backward.
void check_gradients(std::string_view op, const Problem& p, const Tensor& grad_output, const Tensor& grad_final_state,
                     const Tensor& boundaries);
/// K and V against what the Vulkan kernels take.
void check_widths(std::string_view op, const Problem& p);
/// That `boundaries` has fewer than 2^63 elements.
void check_boundary_count(std::string_view op, const Problem& p);

/// How the work of a call is cut: `heads` value heads at a time (whole groups), `tiles` tiles of each.
struct Slabs {
    std::int64_t heads = 0, tiles = 0;
    std::size_t slot_bytes = 0;
    std::size_t workspace() const { return static_cast<std::size_t>(heads * tiles) * slot_bytes; }
};
/// At most kMostWorkspace bytes. `keep`: with what the backward needs. `align`: tiles a slab shall be a multiple of.
Slabs plan_slabs(const Problem& p, bool keep, std::int64_t align = 1);
/// Tiles of a segment where the segments of a slab run side by side, by the table kda.segments; 0: they do not.
std::int64_t segment_tiles(std::string_view op, const Problem& p);
/// For tests: tiles of a segment wherever Vulkan runs; 0: as ever.
void force_segments(std::int64_t tiles);
inline constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;
/// What a Vulkan device may use: kMostWorkspace, or what a test asks for.
std::size_t most_workspace();

/// A 32-bit stride of every axis, as the kernels take it; a tensor with longer ones is copied first.
struct Strided {
    Tensor tensor;
    std::uint32_t s[4] = {0, 0, 0, 0};
};
Strided strided(const Tensor& t);

/// Extents of K and V in the workspace.
std::uint32_t padded(const Problem& p, std::int64_t width);

/// HV - 1 and HV / H - 1 in 16 bits each, for the Vulkan kernels.
std::uint32_t heads_packed(const Problem& p);

/// For tests: bytes of workspace to plan with; 0: as ever.
void force_workspace(std::size_t bytes);
/// For tests: the row of the table kda.path to use where it fits, or "emulated" for the fast kernels without
/// cooperative matrices; empty: the first that does.
void force_path(std::string_view name);

/// The specialization constants of KdaSpec; `steps`: innermost strides of query, key, value, log_decay, output.
Spec spec_of(const Problem& p, std::initializer_list<std::uint32_t> steps, std::int64_t tiles, bool keep);

/// Spacing between states that forward stores, in tokens; none: no boundaries.
void run_forward(std::string_view op, const Problem& p, const Inputs& in, const KdaOutput& out, std::int64_t spacing,
                 KdaPrecision precision);
void run_decode(const Problem& p, const Inputs& in, const Tensor& output, const Tensor& state_out);
/// `boundaries`, if defined, are states every p.chunk_size tokens.
void run_backward(std::string_view op, const Problem& p, const Inputs& in, const Tensor& grad_output,
                  const Tensor& grad_final_state, const Tensor& boundaries, const KdaGradients& out,
                  KdaPrecision precision);

}  // namespace vkml::kda

#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "vkml/core/random.h"
#include "vkml/core/tensor.h"
#include "vkml/ops/attention/attention_kernel.h"

/// What the files of this folder share: a checked call, the tensors as kernels take them, and the two forms.
namespace vkml::attention {

inline constexpr std::string_view kOp = "scaled_dot_product_attention";

/// A checked call. `lead`: the leading axes of the output, heads last.
struct Call {
    Tensor query, key, value, mask;
    double dropout_p = 0, scale = 1;
    bool causal = false;
    Draw draw;  // folded
    Shape lead;
    std::int64_t L = 0, S = 0, E = 0, Ev = 0;
    std::int64_t query_heads = 1, key_heads = 1, value_heads = 1;  // differ only where heads are grouped

    Shape output_shape() const;
    bool masked() const { return causal || mask.defined(); }
    bool empty() const { return numel(lead) == 0 || L == 0 || S == 0 || E == 0 || Ev == 0; }
};

/// A tensor with strides along [B, heads, rows]; innermost stride 1.
struct Placed {
    Tensor tensor;
    std::uint32_t b = 0, h = 0, row = 0, column = 1;
};

/// The call as kernels see it: attention_args.h.
struct Problem {
    std::int64_t B = 1, H = 1, G = 1, L = 0, S = 0, E = 0, Ev = 0;
    Placed query, key, value, mask;
    std::uint32_t mask_kind = kNoMask;
    bool vectors = false;          // 16-byte loads everywhere
    const char* cannot = nullptr;  // why no kernel can take it
    bool is_cpu = false, is_f64 = false;

    std::int64_t batches() const { return B * H; }
    std::int64_t rows() const { return G * L; }  // of a batch
};
/// Copies query, key or value only where its strides are out of reach of the kernels; the mask is never expanded.
Problem place(const Call& call);
/// `last`: what stands at kRowsAtOnce, or on the CPU at kQueryLow and kQueryHigh.
Spec spec_of(const Call& call, const Problem& p, std::uint64_t last = 0);

/// Rows of the table attention.path.
enum class Path : std::uint8_t { tiled, split, cooperative, cooperative_shared, emulated, wide, narrow, composed };
Path choose_path(const Call& call, const Problem& p);
/// Of the table attention_backward.path, on Vulkan: cooperative, cooperative_shared, emulated, wide or narrow.
Path choose_backward(const Call& call, const Problem& p);

/// Writes lse ([B, H, G L], f32 or f64) unless it is undefined.
Tensor run_forward(const Call& call, const Problem& p, Path path, const Tensor& lse);

struct Gradients {
    Tensor query, key, value;
};
/// Gradients in the shapes of the call's tensors; those not needed may be undefined.
Gradients run_backward(const Call& call, const Tensor& output, const Tensor& lse, const Tensor& grad,
                       const bool (&needs)[3]);

/// The same of ordinary operators: oracle, fallback and second derivatives. It builds the L x S matrix.
Tensor composed(const Call& call);
Gradients composed_backward(const Call& call, const Tensor& grad);

}  // namespace vkml::attention

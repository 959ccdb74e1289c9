#pragma once
#include <optional>
#include <string_view>

#include "vkml/core/random.h"
#include "vkml/core/tensor.h"

namespace vkml {

/// What may be said about a call beside its tensors.
struct AttentionOptions {
    double dropout_p = 0;         // of the weights
    bool is_causal = false;       // row i sees columns j <= i; not together with a mask
    std::optional<double> scale;  // of the products; else 1 / sqrt(E)
    bool enable_gqa = false;      // query may have a multiple of key's and value's heads, axis -3
};

/// softmax(query key^T scale + mask) value on [..., L, E], [..., S, E] and [..., S, Ev]; leading axes broadcast. The
/// mask broadcasts to [..., L, S]: bool is true where attention is allowed, floats are added. A row with nothing
/// allowed gives 0, and so do its gradients. Tiled (Dao et al., "FlashAttention", NeurIPS 2022): no L x S matrix is
/// built, forward or backward. Dropout takes the default generator's next draw; its mask is made again, not kept.
/// With cooperative matrices weights of 16-bit tensors are rounded to their dtype before they meet value, and so are
/// weights and slopes in the backward.
/// Throws ShapeError, DTypeError, DeviceError.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask = {}, const AttentionOptions& options = {});

namespace attention {

/// For tests: the row of the table attention.path that is taken wherever it fits; empty restores the order.
void force_path(std::string_view name);

}  // namespace attention
}  // namespace vkml

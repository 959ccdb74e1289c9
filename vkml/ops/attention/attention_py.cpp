#include "bind.h"
#include "vkml/ops/attention/attention.h"

VKML_PYTHON(attention) {
    using namespace vkml;
    using namespace vkml::python;
    m.def(
        "scaled_dot_product_attention",
        [](const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask,
           double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
            return scaled_dot_product_attention(query, key, value, attn_mask.value_or(Tensor()),
                                                {dropout_p, is_causal, scale, enable_gqa});
        },
        "query"_a, "key"_a, "value"_a, "attn_mask"_a = nb::none(), "dropout_p"_a = 0.0, "is_causal"_a = false,
        "scale"_a = nb::none(), "enable_gqa"_a = false, ReleaseGil(),
        R"(softmax(query @ key.T * scale + mask) @ value, in tiles: no L x S matrix is built.

Parameters
----------
query, key, value : Tensor
    (..., L, E), (..., S, E) and (..., S, Ev), floating point, of one dtype; leading axes broadcast.
attn_mask : Tensor, optional
    Broadcasts to (..., L, S). bool: True where attention is allowed, as in PyTorch; floats are added.
dropout_p : float
    Weights are zeroed with this probability, by the default generator's next draw.
is_causal : bool
    Row i sees columns up to i. Not together with a mask.
scale : float, optional
    Of the products; 1 / sqrt(E) if not given.
enable_gqa : bool
    query may have a multiple of the heads (axis -3) of key and value.

Returns
-------
Tensor
    (..., L, Ev). A row with nothing allowed gives 0, and so do its gradients.

Examples
--------
>>> q, k, v = (vkml.randn((2, 4, 5, 8)) for _ in range(3))  # batch, heads, length, width
>>> vkml.scaled_dot_product_attention(q, k, v, is_causal=True).shape
(2, 4, 5, 8)

References
----------
Dao et al., "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", NeurIPS 2022.
)");
    // For tests of the rows of attention.path.
    m.def("_force_attention_path", [](const std::string& name) { attention::force_path(name); });
}

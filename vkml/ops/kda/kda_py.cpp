#include "bind.h"
#include "vkml/ops/kda/kda_internal.h"

namespace {

using namespace vkml;

KdaPrecision precision_of(const char* op, const std::string& word) {
    check(word == "strict" || word == "fast", op, ": precision: expected 'strict' or 'fast', got '", word, "'");
    return word == "fast" ? KdaPrecision::fast : KdaPrecision::strict;
}

Tensor given(const std::optional<Tensor>& t) { return t.value_or(Tensor{}); }

using MaybeTensor = std::optional<Tensor>;
using MaybeNumber = std::optional<double>;

}  // namespace

VKML_PYTHON(kda) {
    using namespace vkml::python;
    m.def(
        "chunk_kda",
        [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay, const Tensor& beta,
           const MaybeTensor& initial_state, MaybeNumber scale, std::int64_t chunk_size, bool retain_boundaries,
           const std::string& precision) {
            KdaOutput out;
            {
                const GilRelease release;
                out = chunk_kda(query, key, value, log_decay, beta, given(initial_state), scale, chunk_size,
                                retain_boundaries, precision_of("chunk_kda", precision));
            }
            const nb::object boundaries = out.boundaries.defined() ? nb::cast(out.boundaries) : nb::none();
            return nb::module_::import_("vkml.kda").attr("KdaOutput")(out.output, out.final_state, boundaries);
        },
        "query"_a, "key"_a, "value"_a, "log_decay"_a, "beta"_a, "initial_state"_a = nb::none(), "scale"_a = nb::none(),
        "chunk_size"_a = 64, "retain_boundaries"_a = false, nb::kw_only(), "precision"_a = "strict",
        R"(Kimi Delta Attention over a whole sequence.

Per value head, with ``a = exp(log_decay)``: ``S = diag(a) S``, ``u = beta (v - S^T k)``, ``S = S + k u^T``,
``o = scale S^T q``, token after token, in time and memory linear in T.

Parameters
----------
query, key : Tensor
    [B, H, T, K]; float32, float16 or bfloat16 (float64 on the CPU). Not normalised here.
value : Tensor
    [B, HV, T, V], HV a multiple of H: value head j uses query head j // (HV // H).
log_decay : Tensor
    [B, HV, T, K], float32 (float64 with float64): natural logarithm of the fade, normally <= 0. -inf resets a channel.
beta : Tensor
    [B, HV, T], float32 (float64 with float64): the step size.
initial_state : Tensor, optional
    [B, HV, K, V], float32 (float64 with float64); zeros if left out.
scale : float, optional
    Multiplies the query; K**-0.5 if left out.
chunk_size : int
    Tokens between the states in ``boundaries``; changes nothing else.
retain_boundaries : bool
    Also return the state before every chunk, [N, B, HV, K, V].
precision : {"strict", "fast"}
    "fast" rounds the operands of matrix products to bfloat16 where the device has cooperative matrices.

Returns
-------
KdaOutput
    ``output`` [B, HV, T, V], ``final_state`` [B, HV, K, V], ``boundaries`` or None. Differentiable through the first two.

Examples
--------
>>> q = k = vkml.ones(1, 1, 2, 2)
>>> o = vkml.chunk_kda(q, k, vkml.ones(1, 1, 2, 1), vkml.zeros(1, 1, 2, 2), vkml.full((1, 1, 2), 0.5), scale=1.0)
>>> o.output.tolist()
[[[[1.0], [1.0]]]]
)");
    m.def(
        "chunk_kda_backward",
        [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay, const Tensor& beta,
           const MaybeTensor& initial_state, const MaybeTensor& grad_output, const MaybeTensor& grad_final_state,
           const MaybeTensor& boundaries, MaybeNumber scale, std::int64_t chunk_size, const std::string& precision) {
            KdaGradients g;
            {
                const GilRelease release;
                g = chunk_kda_backward(query, key, value, log_decay, beta, given(initial_state), given(grad_output),
                                       given(grad_final_state), given(boundaries), scale, chunk_size,
                                       precision_of("chunk_kda_backward", precision));
            }
            return nb::module_::import_("vkml.kda")
                .attr("KdaGradients")(g.query, g.key, g.value, g.log_decay, g.beta, g.initial_state);
        },
        "query"_a, "key"_a, "value"_a, "log_decay"_a, "beta"_a, "initial_state"_a.none(), "grad_output"_a.none(),
        "grad_final_state"_a = nb::none(), "boundaries"_a = nb::none(), "scale"_a = nb::none(), "chunk_size"_a = 64,
        nb::kw_only(), "precision"_a = "strict", R"(Gradients of chunk_kda, as autograd gives them.

Parameters
----------
query, key, value, log_decay, beta, initial_state
    As for ``chunk_kda``.
grad_output, grad_final_state : Tensor or None
    Gradients of its results; None means zeros.
boundaries : Tensor, optional
    States that ``chunk_kda`` returned with the same chunk_size: the backward starts from them.

Returns
-------
KdaGradients
    ``query, key, value, log_decay, beta, initial_state``, each of its input's shape and dtype.

Examples
--------
>>> x, g = vkml.ones(1, 1, 2, 2), vkml.zeros(1, 1, 2, 2)
>>> d = vkml.chunk_kda_backward(x, x, x, g, vkml.zeros(1, 1, 2), None, x)
>>> d.value.tolist()
[[[[0.0, 0.0], [0.0, 0.0]]]]
)");
    m.def(
        "kda_decode",
        [](const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& log_decay, const Tensor& beta,
           const Tensor& state, MaybeNumber scale,
           bool update_state) { return kda_decode(query, key, value, log_decay, beta, state, scale, update_state); },
        "query"_a, "key"_a, "value"_a, "log_decay"_a, "beta"_a, "state"_a, "scale"_a = nb::none(), nb::kw_only(),
        "update_state"_a = false, ReleaseGil(), R"(One token of Kimi Delta Attention in one dispatch. Has no gradient.

Parameters
----------
query, key, value, log_decay, beta
    As for ``chunk_kda``, with T = 1.
state : Tensor
    [B, HV, K, V], float32.
update_state : bool
    Write the new state into ``state``, which must be contiguous, instead of a new tensor.

Returns
-------
tuple[Tensor, Tensor]
    The output [B, HV, 1, V] and the state after the token.

Examples
--------
>>> x, s = vkml.ones(1, 1, 1, 2), vkml.zeros(1, 1, 2, 2)
>>> o, s = vkml.kda_decode(x, x, x, vkml.zeros(1, 1, 1, 2), vkml.ones(1, 1, 1), s, scale=1.0)
>>> o.tolist()
[[[[2.0, 2.0]]]]
)");
    // For tests of the slabs and of the rows of kda.path.
    m.def("_force_kda_workspace", [](std::size_t bytes) { kda::force_workspace(bytes); });
    m.def("_force_kda_segments", [](std::int64_t tiles) { kda::force_segments(tiles); });
    m.def("_force_kda_path", [](const std::string& name) { kda::force_path(name); });
}

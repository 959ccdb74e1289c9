"""Operators with PyTorch's names, argument order and defaults."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from ._functional.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from ._functional.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
)
from ._functional.layers import (
    bilinear,
    dropout,
    dropout1d,
    dropout2d,
    embedding,
    linear,
)
from ._functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    nll_loss,
    pairwise_distance,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from ._functional.norm import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from ._functional.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from ._functional.resize import (
    interpolate,
)
from ._functional.shape import (
    cosine_similarity,
    fold,
    normalize,
    one_hot,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "embedding",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "unfold",
]


def _causal(rows: int, columns: int, device: Any) -> Tensor:
    """True where row i may look at column j: j <= i."""
    i = _core.arange(rows, device=device).unsqueeze(-1)
    return _core.arange(columns, device=device).unsqueeze(0) <= i


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value on (..., L, E), (..., S, E) and (..., S, Ev).

    A bool mask is True where attention is allowed, as in PyTorch; a float mask adds. A row with nothing allowed
    gives 0.

    Examples
    --------
    >>> q, k, v = (vkml.randn((2, 4, 5, 8)) for _ in range(3))  # batch, heads, length, width
    >>> vkml.nn.scaled_dot_product_attention(q, k, v, is_causal=True).shape
    (2, 4, 5, 8)
    """
    if attn_mask is not None and is_causal:
        raise _core.ShapeError("scaled_dot_product_attention: expected attn_mask or is_causal, got both")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _core.matmul(query * scale, key.transpose(-2, -1))
    if is_causal:
        attn_mask = _causal(scores.shape[-2], scores.shape[-1], scores.device)
    if attn_mask is None:
        weights = _core.softmax(scores, -1)
    elif attn_mask.dtype == _core.bool_:
        scores = _core.masked_fill(scores, _core.equal(attn_mask, False), float("-inf"))
        weights = _blocked_softmax(scores)
    else:
        weights = _blocked_softmax(scores + attn_mask.to(dtype=scores.dtype))
    if dropout_p > 0:
        weights = _core.dropout(weights, dropout_p)
    return _core.matmul(weights, value)


def _blocked_softmax(scores: Tensor) -> Tensor:
    """Softmax in which a row of -inf gives 0 instead of NaN, in the gradient too."""
    blocked = _core.equal(scores.detach().amax(-1, keepdim=True), float("-inf"))
    rows = _core.masked_fill(scores, blocked, 0.0)
    return _core.masked_fill(_core.softmax(rows, -1), blocked, 0.0)

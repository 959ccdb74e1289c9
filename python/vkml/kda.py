"""Kimi Delta Attention, readable: what `chunk_kda`, `chunk_kda_backward` and `kda_decode` compute."""

from __future__ import annotations

from typing import NamedTuple

from . import _core
from ._core import Tensor

__all__ = ["KdaGradients", "KdaOutput", "naive_recurrent_kda"]


class KdaOutput(NamedTuple):
    """Results of `chunk_kda`."""

    output: Tensor
    final_state: Tensor
    boundaries: Tensor | None = None


class KdaGradients(NamedTuple):
    """Results of `chunk_kda_backward`, one per input of `chunk_kda`."""

    query: Tensor
    key: Tensor
    value: Tensor
    log_decay: Tensor
    beta: Tensor
    initial_state: Tensor


def naive_recurrent_kda(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    initial_state: Tensor | None = None,
    scale: float | None = None,
) -> KdaOutput:
    """The definition: one token after the other, in ordinary operators. Slow; any device, derivatives of any order.

    Examples
    --------
    >>> q = k = vkml.ones(1, 1, 2, 2)
    >>> beta = vkml.full((1, 1, 2), 0.5)
    >>> o = vkml.naive_recurrent_kda(q, k, vkml.ones(1, 1, 2, 1), vkml.zeros(1, 1, 2, 2), beta, scale=1.0)
    >>> o.output.tolist()
    [[[[1.0], [1.0]]]]
    """
    heads, value_heads, tokens = query.shape[1], value.shape[1], query.shape[2]
    width, wide = query.shape[3], log_decay.dtype
    scale = width**-0.5 if scale is None else scale
    state = initial_state
    if state is None:
        state = _core.full((query.shape[0], value_heads, width, value.shape[3]), 0, wide, query.device)
    # Value head j uses query and key head j // group.
    group = value_heads // heads if heads else 1
    q, k = (x.to(wide).unsqueeze(2).expand(-1, -1, group, -1, -1).flatten(1, 2) for x in (query, key))
    v, outputs = value.to(wide), []
    for t in range(tokens):
        k_t = k[:, :, t].unsqueeze(-1)  # [B, HV, K, 1]
        state = log_decay[:, :, t].exp().unsqueeze(-1) * state
        residual = v[:, :, t].unsqueeze(-2) - (state * k_t).sum(-2, keepdim=True)  # [B, HV, 1, V]
        state = state + k_t * (beta[:, :, t].unsqueeze(-1).unsqueeze(-1) * residual)
        outputs.append(scale * (state * q[:, :, t].unsqueeze(-1)).sum(-2))
    output = _core.stack(outputs, 2) if outputs else v
    return KdaOutput(output.to(value.dtype), state)

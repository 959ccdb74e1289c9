"""Attention layers. The batch comes first: (batch, sequence, features)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._creation import tensor, zeros
from . import functional as F
from . import init
from .layers import Linear, parameter
from .module import Module, Parameter

__all__ = ["MultiheadAttention", "PositionalEncoding"]


class MultiheadAttention(Module):
    """Attention of several heads; returns the output only. Parameter names equal PyTorch's.

    A bool mask blocks where it is True; a float mask adds. A row with everything blocked gives 0
    before the output projection.

    Examples
    --------
    >>> attend = vkml.nn.MultiheadAttention(16, num_heads=4)
    >>> attend(vkml.randn((2, 5, 16)), is_causal=True).shape
    (2, 5, 16)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        batch_first: bool = True,
        dropout: float = 0.0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise _core.ShapeError(f"MultiheadAttention: num_heads: expected a divisor of {embed_dim}, got {num_heads}")
        self.embed_dim, self.num_heads, self.batch_first, self.dropout = embed_dim, num_heads, batch_first, dropout
        kind = {"device": device, "dtype": _core.float32 if dtype is None else dtype}
        self.in_proj_weight = parameter(3 * embed_dim, embed_dim, **kind)
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim, **kind)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, **kind)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _projected(self, inputs: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        """Queries, keys and values, each (..., heads, length, width); one product where all come from one tensor."""
        q, k, v = inputs
        if q is k and k is v:
            made = _core.chunk(F.linear(q, self.in_proj_weight, self.in_proj_bias), 3, -1)
        else:
            biases = (None,) * 3 if self.in_proj_bias is None else _core.chunk(self.in_proj_bias, 3)
            weights = _core.chunk(self.in_proj_weight, 3)
            made = tuple(F.linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True))
        width = self.embed_dim // self.num_heads
        return [y.reshape(*y.shape[:-1], self.num_heads, width).transpose(-3, -2) for y in made]

    def _mask(self, mask: Tensor, batch: int) -> Tensor:
        if mask.dtype == _core.bool_:
            mask = _core.equal(mask, False)
        if mask.ndim == 3 and mask.shape[0] == batch * self.num_heads:
            mask = mask.reshape(batch, self.num_heads, *mask.shape[1:])
        return mask

    def forward(
        self,
        q: Tensor,
        k: Tensor | None = None,
        v: Tensor | None = None,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        if attn_mask is not None and is_causal:
            raise _core.ShapeError("MultiheadAttention: expected attn_mask or is_causal, got both")
        k = q if k is None else k
        v = k if v is None else v
        for name, x in (("q", q), ("k", k), ("v", v)):
            if x.ndim not in (2, 3) or x.shape[-1] != self.embed_dim:
                raise _core.ShapeError(
                    f"MultiheadAttention: {name}: expected shape (batch, sequence, {self.embed_dim}), got {x.shape}"
                )
        if not self.batch_first and q.ndim == 3:
            turned = {id(x): x.transpose(0, 1) for x in (q, k, v)}
            q, k, v = (turned[id(x)] for x in (q, k, v))
        mask = None if attn_mask is None else self._mask(attn_mask, q.shape[0])
        p = self.dropout if self.training else 0.0
        qh, kh, vh = self._projected((q, k, v))
        y = F.scaled_dot_product_attention(qh, kh, vh, attn_mask=mask, dropout_p=p, is_causal=is_causal)
        y = self.out_proj(y.transpose(-3, -2).reshape(q.shape))
        return y if self.batch_first or q.ndim == 2 else y.transpose(0, 1)

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"


class PositionalEncoding(Module):
    """Adds sin (even columns) and cos (odd columns) of position / base^(2i / d_model).

    Examples
    --------
    >>> vkml.nn.PositionalEncoding(4)(vkml.zeros(1, 2, 4))
    tensor([[[0.0000, 1.0000, 0.0000, 1.0000],
             [0.8415, 0.5403, 0.0100, 0.9999]]])
    """

    def __init__(
        self,
        d_model: int,
        max_len: int = 5000,
        base: float = 10000.0,
        batch_first: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if d_model < 2 or d_model % 2:
            raise _core.ShapeError(f"PositionalEncoding: d_model: expected an even number, got {d_model}")
        angles = np.arange(max_len)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
        table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, d_model)
        self.batch_first, self.max_len = batch_first, max_len
        self.register_buffer("pe", tensor(table, dtype=_core.float32 if dtype is None else dtype, device=device))

    def forward(self, x: Tensor) -> Tensor:
        axis = -2 if self.batch_first else 0
        n = x.shape[axis]
        if n > self.max_len:
            raise _core.ShapeError(f"PositionalEncoding: expected at most {self.max_len} positions, got {n}")
        pe = self.pe.narrow(0, 0, n).to(dtype=x.dtype)
        return x + (pe if self.batch_first or x.ndim == 2 else pe.unsqueeze(1))

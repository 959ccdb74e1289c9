"""Attention layers. The batch comes first: (batch, sequence, features)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import _core
from .._core import Tensor
from .._creation import tensor, zeros
from . import functional as F
from . import init
from .container import ModuleList
from .layers import Dropout, Linear, parameter
from .module import Module, Parameter
from .norm import LayerNorm

__all__ = ["MultiheadAttention", "PositionalEncoding", "TransformerEncoder", "TransformerEncoderLayer"]


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

    def _heads(self, x: Tensor, part: int) -> Tensor:
        n = self.embed_dim
        weight = self.in_proj_weight.narrow(0, part * n, n)
        bias = None if self.in_proj_bias is None else self.in_proj_bias.narrow(0, part * n, n)
        y = _core.linear(x, weight, bias)
        return y.reshape(*y.shape[:-1], self.num_heads, n // self.num_heads).transpose(-3, -2)

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
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        heads = [self._heads(x, part) for part, x in enumerate((q, k, v))]
        mask = None if attn_mask is None else self._mask(attn_mask, q.shape[0])
        p = self.dropout if self.training else 0.0
        qh, kh, vh = heads
        y = F.scaled_dot_product_attention(qh, kh, vh, attn_mask=mask, dropout_p=p, is_causal=is_causal)
        y = self.out_proj(y.transpose(-3, -2).reshape(q.shape))
        return y if self.batch_first or q.ndim == 2 else y.transpose(0, 1)

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"


class TransformerEncoderLayer(Module):
    """Self-attention and a two-layer network, each with a residual and a LayerNorm. Parameter names equal PyTorch's.

    Examples
    --------
    >>> layer = vkml.nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=32)
    >>> layer(vkml.randn((2, 5, 16))).shape
    (2, 5, 16)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = True,
        norm_first: bool = False,
        seed: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise _core.ShapeError(f"TransformerEncoderLayer: activation: expected relu or gelu, got {activation!r}")
        kind = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, batch_first=batch_first, dropout=dropout, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, **kind)
        self.linear2 = Linear(dim_feedforward, d_model, **kind)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **kind)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **kind)
        seeds = [None if seed is None else seed + i for i in range(3)]
        self.dropout, self.dropout1, self.dropout2 = (Dropout(dropout, s) for s in seeds)
        self.activation, self.norm_first = activation, norm_first

    def _network(self, x: Tensor) -> Tensor:
        hidden = _core.relu(self.linear1(x)) if self.activation == "relu" else _core.gelu(self.linear1(x))
        return self.dropout2(self.linear2(self.dropout(hidden)))

    def forward(self, src: Tensor, src_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, attn_mask=src_mask, is_causal=is_causal))

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._network(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._network(x))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other, then a norm if one is given.

    Examples
    --------
    >>> layer = vkml.nn.TransformerEncoderLayer(16, nhead=4, dim_feedforward=32)
    >>> vkml.nn.TransformerEncoder(layer, num_layers=3)(vkml.randn((2, 5, 16))).shape
    (2, 5, 16)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        if num_layers < 1:
            raise _core.ShapeError(f"TransformerEncoder: num_layers: expected at least 1, got {num_layers}")
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        for i, layer in enumerate(self.layers):
            for part in layer.modules():
                if isinstance(part, Dropout) and part.seed is not None:
                    part.seed += 3 * i  # a layer uses three: copies must not drop alike
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal)
        return src if self.norm is None else self.norm(src)


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

"""The layers of a transformer, and stacks of them."""

from __future__ import annotations

import copy
from typing import Any

from .. import _core
from .._core import Tensor
from .attention import MultiheadAttention
from .container import ModuleList
from .layers import Dropout, Linear
from .module import Module
from .norm import LayerNorm

__all__ = ["TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

_ACTIVATIONS = {"relu": _core.relu, "gelu": _core.gelu}


def _checked_activation(name: str, word: str) -> str:
    if word not in _ACTIVATIONS:
        raise _core.ShapeError(f"{name}: activation: expected relu or gelu, got {word!r}")
    return word


def _copies(layer: Module, n: int) -> ModuleList:
    if n < 1:
        raise _core.ShapeError(f"num_layers: expected at least 1, got {n}")
    layers = ModuleList(copy.deepcopy(layer) for _ in range(n))
    for i, one in enumerate(layers):
        for part in one.modules():
            if isinstance(part, Dropout) and part.seed is not None:
                part.seed += 4 * i  # a layer uses up to four: copies must not drop alike
    return layers


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
        self.activation = _checked_activation("TransformerEncoderLayer", activation)
        kind = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, batch_first=batch_first, dropout=dropout, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, **kind)
        self.linear2 = Linear(dim_feedforward, d_model, **kind)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **kind)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **kind)
        seeds = [None if seed is None else seed + i for i in range(3)]
        self.dropout, self.dropout1, self.dropout2 = (Dropout(dropout, s) for s in seeds)
        self.norm_first = norm_first

    def _network(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(_ACTIVATIONS[self.activation](self.linear1(x)))))

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
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, and a two-layer network, each with a residual and a LayerNorm.

    Parameter names equal PyTorch's.

    Examples
    --------
    >>> layer = vkml.nn.TransformerDecoderLayer(16, nhead=4, dim_feedforward=32)
    >>> layer(vkml.randn((2, 5, 16)), vkml.randn((2, 7, 16)), tgt_is_causal=True).shape
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
        self.activation = _checked_activation("TransformerDecoderLayer", activation)
        kind = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, batch_first=batch_first, dropout=dropout, **kind)
        self.multihead_attn = MultiheadAttention(d_model, nhead, batch_first=batch_first, dropout=dropout, **kind)
        self.linear1 = Linear(d_model, dim_feedforward, **kind)
        self.linear2 = Linear(dim_feedforward, d_model, **kind)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model, layer_norm_eps, **kind) for _ in range(3))
        seeds = [None if seed is None else seed + i for i in range(4)]
        self.dropout, self.dropout1, self.dropout2, self.dropout3 = (Dropout(dropout, s) for s in seeds)
        self.norm_first = norm_first

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, attn_mask=tgt_mask, is_causal=tgt_is_causal))

        def recall(x: Tensor) -> Tensor:
            y = self.multihead_attn(x, memory, memory, attn_mask=memory_mask, is_causal=memory_is_causal)
            return self.dropout2(y)

        def network(x: Tensor) -> Tensor:
            hidden = _ACTIVATIONS[self.activation](self.linear1(x))
            return self.dropout3(self.linear2(self.dropout(hidden)))

        x = tgt
        for part, norm in ((attend, self.norm1), (recall, self.norm2), (network, self.norm3)):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other, then a norm if one is given.

    Examples
    --------
    >>> layer = vkml.nn.TransformerDecoderLayer(16, nhead=4, dim_feedforward=32)
    >>> vkml.nn.TransformerDecoder(layer, num_layers=2)(vkml.randn((2, 5, 16)), vkml.randn((2, 7, 16))).shape
    (2, 5, 16)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)

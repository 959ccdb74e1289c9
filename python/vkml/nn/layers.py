"""Linear, Embedding, Dropout and layers that only move data."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import empty
from . import functional as F
from . import init
from .module import Module, Parameter

__all__ = [
    "Bilinear",
    "CosineSimilarity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "Identity",
    "Linear",
    "Unflatten",
]


def parameter(*shape: int, device: Any, dtype: Any) -> Parameter:
    return Parameter(empty(shape, device=device, dtype=_core.float32 if dtype is None else dtype))


def affine(fan_in: int, *tensors: Tensor | None) -> None:
    """What PyTorch gives weights and biases of linear and convolution layers: uniform in +-1/sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    for t in tensors:
        if t is not None:
            init.uniform_(t, -bound, bound)


def about_input(layer: Any, error: Exception, x: Tensor, axis: int, extent: int, what: str) -> Exception:
    """What to raise for an operator's error: words about the layer's input, where that and not the weight is wrong."""
    name, dtype = type(layer).__name__, layer.weight.dtype
    if isinstance(error, _core.DTypeError) and x.dtype != dtype:
        return _core.DTypeError(f"{name}: expected {dtype}, the weight's dtype, got {x.dtype}")
    if isinstance(error, _core.ShapeError) and x.ndim >= -axis and x.shape[axis] != extent:
        return _core.ShapeError(f"{name}: expected {extent} {what}, got shape {x.shape}")
    return error


class Linear(Module):
    """x @ weight.T + bias, on the last axis: (..., in_features) -> (..., out_features).

    Examples
    --------
    >>> vkml.nn.Linear(3, 2)(vkml.ones(5, 3)).shape
    (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        affine(self.in_features, self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        try:
            return F.linear(x, self.weight, self.bias)
        except (_core.ShapeError, _core.DTypeError) as error:
            raise about_input(self, error, x, -1, self.in_features, "features on the last axis") from None

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x1 @ weight[i] @ x2 for every output i, plus bias: (..., in1) and (..., in2) -> (..., out_features).

    Examples
    --------
    >>> vkml.nn.Bilinear(3, 4, 2)(vkml.ones(5, 3), vkml.ones(5, 4)).shape
    (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", parameter(out_features, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        affine(self.in1_features, self.weight, self.bias)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """Rows of a table: integers of any shape -> (..., embedding_dim). The padding row is 0 and gets no gradient.

    Examples
    --------
    >>> vkml.nn.Embedding(10, 4)(vkml.tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise _core.ShapeError(f"Embedding: padding_idx: expected a row of {num_embeddings}, got {padding_idx}")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
        self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A layer around the table given, which is not copied; a frozen one is not trained."""
        if embeddings.ndim != 2:
            raise _core.ShapeError(f"Embedding: embeddings: expected rank 2, got {embeddings.shape}")
        rows, width = embeddings.shape
        made = cls(rows, width, padding_idx, device=embeddings.device, dtype=embeddings.dtype)
        made.weight = Parameter(embeddings, requires_grad=not freeze)
        return made

    def reset_parameters(self) -> None:
        """Draws the table anew: normal, the padding row 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(_core.select(self.weight.detach(), 0, self.padding_idx))

    def forward(self, index: Tensor) -> Tensor:
        return F.embedding(index, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Dropout(Module):
    """In training, zeroes elements with probability p and scales the others by 1 / (1 - p).

    With a seed the layer has a stream of its own: (seed, 0), (seed, 1), ...; else it draws from the default generator.

    Examples
    --------
    >>> vkml.nn.Dropout(0.5).eval()(vkml.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5, seed: int | None = None) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise _core.ShapeError(f"Dropout: p: expected a number in [0, 1], got {p}")
        self.p, self.seed, self.offset = p, seed, 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        if self.seed is None:
            return _core.dropout(x, self.p)
        offset, self.offset = self.offset, self.offset + 1
        return _core.dropout(x, self.p, seed=self.seed, offset=offset)

    def extra_repr(self) -> str:
        return f"p={self.p}" + ("" if self.seed is None else f", seed={self.seed}")


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise _core.ShapeError(f"{type(self).__name__}: p: expected a number in [0, 1], got {p}")
        self.p = p

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_DropoutNd):
    """In training, zeroes whole channels of (N, C, L) with probability p and scales the others by 1 / (1 - p).

    Examples
    --------
    >>> vkml.nn.Dropout1d(0.5).eval()(vkml.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout1d(x, self.p, self.training)


class Dropout2d(_DropoutNd):
    """In training, zeroes whole channels of (N, C, H, W) with probability p and scales the others by 1 / (1 - p).

    Examples
    --------
    >>> vkml.nn.Dropout2d(0.5).eval()(vkml.ones(1, 1, 1, 2))
    tensor([[[[1., 1.]]]])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout2d(x, self.p, self.training)


class Flatten(Module):
    """Merges the axes start_dim to end_dim.

    Examples
    --------
    >>> vkml.nn.Flatten()(vkml.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Identity(Module):
    """Returns its input; takes any arguments.

    Examples
    --------
    >>> vkml.nn.Identity()(vkml.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


class Unflatten(Module):
    """Splits the axis dim into several.

    Examples
    --------
    >>> vkml.nn.Unflatten(1, (3, 4))(vkml.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(int(n) for n in unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return _core.unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along dim; norms count at least eps.

    Examples
    --------
    >>> vkml.nn.CosineSimilarity()(vkml.tensor([[3.0, 4.0]]), vkml.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)

"""Nonlinearities as layers."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from .module import Module

__all__ = ["GELU", "LeakyReLU", "LogSoftmax", "ReLU", "SiLU", "Sigmoid", "Softmax", "Tanh"]


class ReLU(Module):
    """max(x, 0).

    Examples
    --------
    >>> vkml.nn.ReLU()(vkml.tensor([1.0, -2.0]))
    tensor([1., 0.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return _core.relu(x)


class Tanh(Module):
    """tanh(x).

    Examples
    --------
    >>> vkml.nn.Tanh()(vkml.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, x: Tensor) -> Tensor:
        return _core.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> vkml.nn.Sigmoid()(vkml.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, x: Tensor) -> Tensor:
        return _core.sigmoid(x)


class SiLU(Module):
    """x sigmoid(x).

    Examples
    --------
    >>> vkml.nn.SiLU()(vkml.tensor([1.0, -2.0]))
    tensor([ 0.7311, -0.2384])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return _core.silu(x)


class GELU(Module):
    """x times the normal distribution function; approximate="tanh" for the older formula.

    Examples
    --------
    >>> vkml.nn.GELU()(vkml.tensor([1.0, -2.0]))
    tensor([ 0.8413, -0.0455])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise _core.ShapeError(f"GELU: approximate: expected none or tanh, got {approximate!r}")
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return _core.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """x where it is positive, negative_slope x elsewhere.

    Examples
    --------
    >>> vkml.nn.LeakyReLU(0.5)(vkml.tensor([1.0, -2.0]))
    tensor([ 1., -1.])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(_core, "leaky_relu"):
            return _core.leaky_relu(x, self.negative_slope)
        return _core.where(x > 0, x, x * self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class Softmax(Module):
    """exp(x) / sum(exp(x)) along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.Softmax(dim=-1)(vkml.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return _core.softmax(x, -1 if self.dim is None else self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """x - log(sum(exp(x))) along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.LogSoftmax(dim=-1)(vkml.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, x: Tensor) -> Tensor:
        return _core.log_softmax(x, -1 if self.dim is None else self.dim)

"""Nonlinearities as layers; their formulas are those of the functions of the same names in vkml.nn.functional."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import full
from . import functional as F
from .module import Module, Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Inplace(Module):
    """Takes PyTorch's `inplace`, which changes nothing here."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class ReLU(_Inplace):
    """max(x, 0).

    Examples
    --------
    >>> vkml.nn.ReLU()(vkml.tensor([1.0, -2.0]))
    tensor([1., 0.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x)


class ReLU6(_Inplace):
    """min(max(x, 0), 6).

    Examples
    --------
    >>> vkml.nn.ReLU6()(vkml.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.relu6(x)


class SELU(_Inplace):
    """1.0507 elu(x, 1.6733): keeps mean 0 and variance 1 through layers.

    Examples
    --------
    >>> vkml.nn.SELU()(vkml.tensor([1.0, -1.0]))
    tensor([ 1.0507, -1.1113])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.selu(x)


class SiLU(_Inplace):
    """x sigmoid(x).

    Examples
    --------
    >>> vkml.nn.SiLU()(vkml.tensor([1.0, -2.0]))
    tensor([ 0.7311, -0.2384])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


class Mish(_Inplace):
    """x tanh(softplus(x)).

    Examples
    --------
    >>> vkml.nn.Mish()(vkml.tensor([1.0, -2.0]))
    tensor([ 0.8651, -0.2525])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.mish(x)


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6.

    Examples
    --------
    >>> vkml.nn.Hardsigmoid()(vkml.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.hardsigmoid(x)


class Hardswish(_Inplace):
    """x hardsigmoid(x).

    Examples
    --------
    >>> vkml.nn.Hardswish()(vkml.tensor([1.5, 4.0]))
    tensor([1.1250, 4.0000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.hardswish(x)


class Tanh(Module):
    """tanh(x).

    Examples
    --------
    >>> vkml.nn.Tanh()(vkml.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Tanhshrink(Module):
    """x - tanh(x).

    Examples
    --------
    >>> vkml.nn.Tanhshrink()(vkml.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.tanhshrink(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> vkml.nn.Sigmoid()(vkml.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class LogSigmoid(Module):
    """log(sigmoid(x)).

    Examples
    --------
    >>> vkml.nn.LogSigmoid()(vkml.tensor([0.0, 1.0]))
    tensor([-0.6931, -0.3133])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.logsigmoid(x)


class Softsign(Module):
    """x / (1 + |x|).

    Examples
    --------
    >>> vkml.nn.Softsign()(vkml.tensor([1.0, -3.0]))
    tensor([ 0.5000, -0.7500])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softsign(x)


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
        return F.gelu(x, self.approximate)

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
        return F.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class PReLU(Module):
    """LeakyReLU whose slopes are learnt: one, or one per channel (axis 1).

    Examples
    --------
    >>> vkml.nn.PReLU()(vkml.tensor([1.0, -2.0])).tolist()
    [1.0, -0.5]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        dtype = _core.float32 if dtype is None else dtype
        self.num_parameters = num_parameters
        self.weight = Parameter(full(num_parameters, float(init), device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(Module):
    """x where it is positive, alpha (exp(x) - 1) elsewhere.

    Examples
    --------
    >>> vkml.nn.ELU()(vkml.tensor([1.0, -1.0]))
    tensor([ 1.0000, -0.6321])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class CELU(ELU):
    """alpha elu(x / alpha): continuous slope for every alpha.

    Examples
    --------
    >>> vkml.nn.CELU(2.0)(vkml.tensor([1.0, -1.0]))
    tensor([ 1.0000, -0.7869])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.celu(x, self.alpha)


class Hardtanh(Module):
    """x, clamped to [min_val, max_val].

    Examples
    --------
    >>> vkml.nn.Hardtanh()(vkml.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not min_val < max_val:
            raise _core.ShapeError(f"Hardtanh: expected min_val below max_val, got {min_val} and {max_val}")
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Softplus(Module):
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.

    Examples
    --------
    >>> vkml.nn.Softplus()(vkml.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongDim(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x) / sum(exp(x)) along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.Softmax(dim=-1)(vkml.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self.dim)


class Softmin(_AlongDim):
    """Softmax of -x along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.Softmin(dim=-1)(vkml.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softmin(x, self.dim)


class LogSoftmax(_AlongDim):
    """x - log(sum(exp(x))) along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.LogSoftmax(dim=-1)(vkml.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self.dim)


class GLU(Module):
    """a sigmoid(b), where a and b are the halves of x along dim.

    Examples
    --------
    >>> vkml.nn.GLU()(vkml.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        if lambd < 0:
            raise _core.ShapeError(f"{type(self).__name__}: lambd: expected a number of at least 0, got {lambd}")
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"lambd={self.lambd}"


class Hardshrink(_Shrink):
    """x outside [-lambd, lambd], 0 inside.

    Examples
    --------
    >>> vkml.nn.Hardshrink()(vkml.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.hardshrink(x, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, 0 where that would pass it.

    Examples
    --------
    >>> vkml.nn.Softshrink()(vkml.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, x: Tensor) -> Tensor:
        return F.softshrink(x, self.lambd)


class Threshold(Module):
    """x where it is above the threshold, value elsewhere.

    Examples
    --------
    >>> vkml.nn.Threshold(0.5, -3.0)(vkml.tensor([-1.0, 2.0]))
    tensor([-3.,  2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def forward(self, x: Tensor) -> Tensor:
        return F.threshold(x, self.threshold, self.value)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"

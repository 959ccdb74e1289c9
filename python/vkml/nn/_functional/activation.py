"""Nonlinearities."""

from __future__ import annotations

from ... import _core
from ..._core import Tensor

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]

# Klambauer et al., Self-Normalizing Neural Networks, 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0). `inplace` is accepted here and below, and changes nothing.

    Examples
    --------
    >>> vkml.nn.functional.relu(vkml.tensor([1.0, -2.0]))
    tensor([1., 0.])
    """
    return _core.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6).

    Examples
    --------
    >>> vkml.nn.functional.relu6(vkml.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """
    return _core.hardtanh(input, 0.0, 6.0)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input, clamped to [min_val, max_val].

    Examples
    --------
    >>> vkml.nn.functional.hardtanh(vkml.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return _core.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(input + 3) / 6.

    Examples
    --------
    >>> vkml.nn.functional.hardsigmoid(vkml.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return relu6(input + 3.0) / 6.0


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """input hardsigmoid(input).

    Examples
    --------
    >>> vkml.nn.functional.hardswish(vkml.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    return input * relu6(input + 3.0) / 6.0


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where it is positive, negative_slope input elsewhere.

    Examples
    --------
    >>> vkml.nn.functional.leaky_relu(vkml.tensor([1.0, -2.0]), 0.5)
    tensor([ 1., -1.])
    """
    return _core.leaky_relu(input, negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu whose slopes are a tensor: one, or one per channel (axis 1).

    Examples
    --------
    >>> vkml.nn.functional.prelu(vkml.tensor([1.0, -2.0]), vkml.tensor([0.25]))
    tensor([ 1.0000, -0.5000])
    """
    if weight.numel() != 1:
        if input.ndim < 2 or weight.shape != (input.shape[1],):
            raise _core.ShapeError(f"prelu: weight: expected one slope or one per channel, got {weight.shape}")
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    return _core.where(input > 0, input, input * weight)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where it is positive, alpha (exp(input) - 1) elsewhere.

    Examples
    --------
    >>> vkml.nn.functional.elu(vkml.tensor([1.0, -1.0]))
    tensor([ 1.0000, -0.6321])
    """
    return _core.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """1.0507 elu(input, 1.6733): keeps mean 0 and variance 1 through layers.

    Examples
    --------
    >>> vkml.nn.functional.selu(vkml.tensor([1.0, -1.0]))
    tensor([ 1.0507, -1.1113])
    """
    return _core.elu(input, _SELU_ALPHA) * _SELU_SCALE


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """alpha elu(input / alpha): continuous slope for every alpha.

    Examples
    --------
    >>> vkml.nn.functional.celu(vkml.tensor([1.0, -1.0]), 2.0)
    tensor([ 1.0000, -0.7869])
    """
    return _core.elu(input / alpha) * alpha


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the normal distribution function; approximate="tanh" for the older formula.

    Examples
    --------
    >>> vkml.nn.functional.gelu(vkml.tensor([1.0, -2.0]))
    tensor([ 0.8413, -0.0455])
    """
    return _core.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input sigmoid(input).

    Examples
    --------
    >>> vkml.nn.functional.silu(vkml.tensor([1.0, -2.0]))
    tensor([ 0.7311, -0.2384])
    """
    return _core.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input tanh(softplus(input)).

    Examples
    --------
    >>> vkml.nn.functional.mish(vkml.tensor([1.0, -2.0]))
    tensor([ 0.8651, -0.2525])
    """
    return _core.mish(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input)).

    Examples
    --------
    >>> vkml.nn.functional.sigmoid(vkml.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """
    return _core.sigmoid(input)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)), without its small numbers lost.

    Examples
    --------
    >>> vkml.nn.functional.logsigmoid(vkml.tensor([0.0, -100.0]))
    tensor([  -0.6931, -100.0000])
    """
    return _core.logsigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(input).

    Examples
    --------
    >>> vkml.nn.functional.tanh(vkml.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return _core.tanh(input)


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input).

    Examples
    --------
    >>> vkml.nn.functional.tanhshrink(vkml.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - _core.tanh(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input outside [-lambd, lambd], 0 inside.

    Examples
    --------
    >>> vkml.nn.functional.hardshrink(vkml.tensor([-1.0, 0.3, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return _core.where(_core.abs(input) <= lambd, 0.0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """input moved towards 0 by lambd, 0 where that would pass it.

    Examples
    --------
    >>> vkml.nn.functional.softshrink(vkml.tensor([-1.0, 0.3, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if lambd < 0:
        raise _core.ShapeError(f"softshrink: lambd: expected a number of at least 0, got {lambd}")
    return input - _core.clamp(input, -lambd, lambd)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """input where it is above the threshold, value elsewhere.

    Examples
    --------
    >>> vkml.nn.functional.threshold(vkml.tensor([-1.0, 2.0]), 0.5, -3.0)
    tensor([-3.,  2.])
    """
    return _core.where(input > threshold, input, value)


def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|).

    Examples
    --------
    >>> vkml.nn.functional.softsign(vkml.tensor([1.0, -3.0]))
    tensor([ 0.5000, -0.7500])
    """
    return input / (_core.abs(input) + 1.0)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta input)) / beta; input itself where beta input is above the threshold.

    Examples
    --------
    >>> vkml.nn.functional.softplus(vkml.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    y = _core.softplus(input) if beta == 1 else _core.softplus(input * beta) / beta
    if threshold >= 20 and input.dtype != _core.float64:
        return y  # the two agree in the last bit
    return _core.where(input * beta > threshold, input, y)


def softmax(input: Tensor, dim: int | None = -1) -> Tensor:
    """exp(input) / sum(exp(input)) along dim; None means the last axis.

    Examples
    --------
    >>> vkml.nn.functional.softmax(vkml.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """
    return _core.softmax(input, -1 if dim is None else dim)


def softmin(input: Tensor, dim: int | None = -1) -> Tensor:
    """softmax(-input).

    Examples
    --------
    >>> vkml.nn.functional.softmin(vkml.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """
    return softmax(-input, dim)


def log_softmax(input: Tensor, dim: int | None = -1) -> Tensor:
    """The logarithm of softmax, without its small numbers lost.

    Examples
    --------
    >>> vkml.nn.functional.log_softmax(vkml.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """
    return _core.log_softmax(input, -1 if dim is None else dim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a sigmoid(b), where a and b are the halves of input along dim.

    Examples
    --------
    >>> vkml.nn.functional.glu(vkml.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """
    rank = max(input.ndim, 1)
    if not -rank <= dim < rank:
        raise _core.IndexError_(f"glu: expected dim in [{-rank}, {rank - 1}], got {dim}")
    if input.ndim == 0 or input.shape[dim] % 2:
        raise _core.ShapeError(f"glu: expected an even extent along dim {dim}, got shape {input.shape}")
    if not input.is_floating_point():
        raise _core.DTypeError(f"glu: expected a floating-point tensor, got {input.dtype}")
    a, b = _core.chunk(input, 2, dim)
    return a * _core.sigmoid(b)

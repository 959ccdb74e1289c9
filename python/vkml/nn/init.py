"""Fills parameters in place, as PyTorch's functions of the same names. Values come from the default generator."""

from __future__ import annotations

import math

import numpy as np

from .. import _core
from .._core import Tensor
from .._creation import tensor as _tensor
from ..autograd import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def _fans(t: Tensor) -> tuple[int, int]:
    if t.ndim < 2:
        raise _core.ShapeError(f"init: expected rank >= 2, got {t.shape}")
    window = math.prod(t.shape[2:])
    return t.shape[1] * window, t.shape[0] * window


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps a signal's size through a nonlinearity.

    Examples
    --------
    >>> vkml.nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {
        "linear": 1.0,
        "conv1d": 1.0,
        "conv2d": 1.0,
        "conv3d": 1.0,
        "sigmoid": 1.0,
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "selu": 0.75,
    }
    if nonlinearity not in gains:
        raise _core.ShapeError(f"calculate_gain: expected one of {', '.join(gains)}, leaky_relu, got {nonlinearity!r}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform in [a, b). Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.uniform_(vkml.empty(3, 5), -0.1, 0.1)
    """
    with no_grad():
        draw = _core.rand(tensor.shape, dtype=_core.float32, device=tensor.device)
        return tensor.assign_((draw * (b - a) + a).to(dtype=tensor.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with a mean and a standard deviation. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.normal_(vkml.empty(3, 5), std=0.02)
    """
    with no_grad():
        draw = _core.randn(tensor.shape, dtype=_core.float32, device=tensor.device)
        return tensor.assign_((draw * std + mean).to(dtype=tensor.dtype))


def constant_(tensor: Tensor, value: float) -> Tensor:
    """One number. Returns the tensor.

    Examples
    --------
    >>> vkml.nn.init.constant_(vkml.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(value)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros. Returns the tensor.

    Examples
    --------
    >>> vkml.nn.init.zeros_(vkml.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones. Returns the tensor.

    Examples
    --------
    >>> vkml.nn.init.ones_(vkml.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Glorot, uniform. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.xavier_uniform_(vkml.empty(3, 5))
    """
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Glorot, normal. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.xavier_normal_(vkml.empty(3, 5))
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise _core.ShapeError(f"init: mode: expected fan_in or fan_out, got {mode!r}")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(1, fan))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """He, uniform. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.kaiming_uniform_(vkml.empty(3, 5), nonlinearity="relu")
    """
    bound = math.sqrt(3.0) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """He, normal. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.kaiming_normal_(vkml.empty(3, 5), nonlinearity="relu")
    """
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))


def _fill(target: Tensor, values: np.ndarray) -> Tensor:
    with no_grad():
        return target.assign_(_tensor(values, dtype=target.dtype, device=target.device))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal, cut to [a, b]: what falls outside is drawn again. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.trunc_normal_(vkml.empty(3, 5), std=0.02)
    """
    if not a < b or std <= 0:
        raise _core.ShapeError(f"trunc_normal_: expected a below b and std above 0, got {a}, {b} and {std}")
    low, high = (math.erf((edge - mean) / (std * math.sqrt(2))) for edge in (a, b))
    if low == high:
        raise _core.ShapeError(f"trunc_normal_: expected [{a}, {b}] to hold some of the distribution")
    # By the inverse of the distribution function, found on the host: a parameter is filled once.
    with no_grad():
        share = _core.rand(tensor.shape, device=tensor.device).numpy().astype(np.float64)
    return _fill(tensor, np.clip(mean + std * math.sqrt(2) * _erfinv(low + share * (high - low)), a, b))


def _erfinv(y: np.ndarray) -> np.ndarray:
    """The inverse of erf: Giles' start (2010), then two steps of Newton's method."""
    y = np.clip(y, -1 + 1e-15, 1 - 1e-15)
    w = np.log1p(-y * y)
    h = 2 / (math.pi * 0.147) + w / 2
    x = np.copysign(np.sqrt(np.sqrt(h * h - w / 0.147) - h), y)
    for _ in range(2):
        x = x - (np.vectorize(math.erf, otypes=[float])(x) - y) * (math.sqrt(math.pi) / 2) * np.exp(x * x)
    return x


def eye_(tensor: Tensor) -> Tensor:
    """The identity, for a matrix of any shape. Returns the tensor.

    Examples
    --------
    >>> vkml.nn.init.eye_(vkml.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise _core.ShapeError(f"eye_: expected rank 2, got {tensor.shape}")
    rows, columns = tensor.shape
    return _fill(tensor, np.eye(rows, columns))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that passes its channels on: a 1 in the middle of the window. Returns the tensor.

    Examples
    --------
    >>> vkml.nn.init.dirac_(vkml.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim < 3 or groups < 1 or tensor.shape[0] % groups:
        raise _core.ShapeError(f"dirac_: expected rank 3 to 5 and channels in {groups} groups, got {tensor.shape}")
    values = np.zeros(tensor.shape)
    per_group = tensor.shape[0] // groups
    middle = tuple(extent // 2 for extent in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, tensor.shape[1])):
            place = (group * per_group + channel, channel, *middle)
            values[place] = 1.0
    return _fill(tensor, values)


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Rows (or columns, where there are more rows) orthogonal and of length gain. Returns the tensor.

    Examples
    --------
    >>> w = vkml.nn.init.orthogonal_(vkml.empty(2, 3))
    >>> (w @ w.T).round()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim < 2:
        raise _core.ShapeError(f"orthogonal_: expected rank >= 2, got {tensor.shape}")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    with no_grad():
        draw = _core.randn((max(rows, columns), min(rows, columns))).numpy().astype(np.float64)
    q, r = np.linalg.qr(draw)
    q = q * np.sign(np.diagonal(r))  # makes the distribution uniform
    return _fill(tensor, gain * (q.T if rows < columns else q).reshape(tensor.shape))

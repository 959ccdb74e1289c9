"""Fills parameters in place, as PyTorch's functions of the same names. Values come from the default generator."""

from __future__ import annotations

import math

from .. import _core
from .._core import Tensor
from ..autograd import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
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
    """The factor that keeps a signal's size through a nonlinearity."""
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
    """Uniform in [a, b). Returns the tensor."""
    with no_grad():
        draw = _core.rand(tensor.shape, dtype=_core.float32, device=tensor.device)
        return tensor.assign_((draw * (b - a) + a).to(dtype=tensor.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal with a mean and a standard deviation. Returns the tensor."""
    with no_grad():
        draw = _core.randn(tensor.shape, dtype=_core.float32, device=tensor.device)
        return tensor.assign_((draw * std + mean).to(dtype=tensor.dtype))


def constant_(tensor: Tensor, value: float) -> Tensor:
    """One number. Returns the tensor."""
    with no_grad():
        return tensor.fill_(value)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros. Returns the tensor."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones. Returns the tensor."""
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Glorot, uniform. Returns the tensor."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Glorot, normal. Returns the tensor."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise _core.ShapeError(f"init: mode: expected fan_in or fan_out, got {mode!r}")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(1, fan))


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """He, uniform. Returns the tensor."""
    bound = math.sqrt(3.0) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """He, normal. Returns the tensor."""
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))

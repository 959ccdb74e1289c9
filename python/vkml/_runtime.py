"""Enums and small tools around execution."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core


class Reduction(str, enum.Enum):
    """How a loss is put together; its words are accepted wherever it is.

    Examples
    --------
    >>> vkml.nn.mse_loss(vkml.ones(2), vkml.zeros(2), reduction=vkml.Reduction.sum)
    tensor(2.)
    """

    mean = "mean"
    sum = "sum"
    none = "none"

    def __str__(self) -> str:
        return self.value


class LogLevel(enum.IntEnum):
    """Messages below the level are dropped."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    OFF = 5


def set_log_level(level: LogLevel | int | str) -> None:
    """Sets what is written to stderr: a LogLevel or its word. WARN at the start, or what VKML_LOG says.

    Examples
    --------
    >>> vkml.set_log_level("warn")
    """
    try:
        value = LogLevel[level.upper()] if isinstance(level, str) else LogLevel(level)
    except (KeyError, ValueError):
        words = ", ".join(LogLevel.__members__)
        raise _core.ShapeError(f"set_log_level: expected one of {words}, got {level!r}") from None
    _core._set_log_level(int(value))


def log_level() -> LogLevel:
    """The level that holds now.

    Examples
    --------
    >>> vkml.log_level().name
    'WARN'
    """
    return LogLevel(_core._log_level())


class eager_mode:
    """`with eager_mode():` waits after every operator inside.

    Examples
    --------
    >>> with vkml.eager_mode():
    ...     vkml.is_eager()
    True
    """

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._previous: list[bool] = []

    def __enter__(self):
        self._previous.append(_core.is_eager())
        _core.set_eager(self._enabled)
        return self

    def __exit__(self, *exception: object) -> None:
        _core.set_eager(self._previous.pop())


def set_deterministic(enabled: bool = True, *, seed: int | None = None) -> None:
    """Asks for the same results on every run of a program.

    Operators always give the same bits on every run, whatever the number of threads or the batch around: no kernel is
    faster by giving that up, so False is accepted and changes nothing. What remains are the random numbers: with
    `seed`, the generators of vkML, Python and NumPy start anew from it.

    Examples
    --------
    >>> vkml.set_deterministic(seed=3)
    >>> x = vkml.rand(2)
    >>> vkml.set_deterministic(seed=3)
    >>> vkml.rand(2).tolist() == x.tolist(), vkml.is_deterministic()
    (True, True)
    """
    if not isinstance(enabled, (bool, np.bool_)):
        raise _core.DTypeError(f"set_deterministic: enabled: expected True or False, got {enabled!r:.40}")
    if seed is not None:
        _core.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)


def is_deterministic() -> bool:
    """True: every operator gives the same bits on every run.

    Examples
    --------
    >>> vkml.is_deterministic()
    True
    """
    return True


def realize(*tensors: Any) -> None:
    """Starts the devices on what was recorded. Execution is eager, so nothing else is left to do.

    Examples
    --------
    >>> y = vkml.ones(2) + 1
    >>> vkml.realize(y)
    """
    for t in tensors:
        for one in t if isinstance(t, (list, tuple)) else [t]:
            one.realize()


@dataclass(frozen=True)
class finfo:
    """The numbers of a floating-point dtype: bits, eps, max, min, tiny, smallest_normal, resolution.

    Examples
    --------
    >>> vkml.finfo("float32").eps
    1.1920928955078125e-07
    """

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str

    def __init__(self, dtype: Any = None) -> None:
        d = _core.get_default_dtype() if dtype is None else _core.dtype(dtype)
        if not d.is_floating_point:
            raise _core.DTypeError(f"finfo: expected a floating-point dtype, got {d}")
        if d == _core.bfloat16:
            values = (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 1e-2)
        else:
            f = np.finfo(str(d))
            values = (f.bits, float(f.eps), float(f.max), float(f.smallest_normal), float(f.resolution))
        bits, eps, largest, tiny, resolution = values
        fields = {"bits": bits, "eps": eps, "max": largest, "min": -largest, "tiny": tiny, "smallest_normal": tiny}
        for name, value in {**fields, "resolution": resolution, "dtype": str(d)}.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class iinfo:
    """The numbers of an integer dtype: bits, max, min.

    Examples
    --------
    >>> vkml.iinfo("int8").max
    127
    """

    bits: int
    max: int
    min: int
    dtype: str

    def __init__(self, dtype: Any) -> None:
        d = _core.dtype(dtype)
        if d.is_floating_point or d == _core.bool_:
            raise _core.DTypeError(f"iinfo: expected an integer dtype, got {d}")
        i = np.iinfo(str(d))
        for name, value in {"bits": i.bits, "max": int(i.max), "min": int(i.min), "dtype": str(d)}.items():
            object.__setattr__(self, name, value)

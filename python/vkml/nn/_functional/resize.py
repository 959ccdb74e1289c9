"""Resampling of images and sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _core
from ..._core import Tensor
from ..._creation import tensor

__all__ = ["interpolate"]

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}  # the axes of space they take


def _targets(x: Tensor, size: Any, scale: Any) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The extents wanted, and the scales given, per axis of space."""
    axes = x.ndim - 2
    if (size is None) == (scale is None):
        raise _core.ShapeError(f"interpolate: expected size or scale_factor, got {size} and {scale}")
    if size is not None:
        wanted = (int(size),) * axes if isinstance(size, (int, np.integer)) else tuple(int(n) for n in size)
        given: tuple[float | None, ...] = (None,) * axes
    else:
        factors = (scale,) * axes if isinstance(scale, (int, float)) else tuple(scale)
        wanted = tuple(math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=False))
        given = tuple(float(f) for f in factors)
    if len(wanted) != axes or len(given) != axes or any(n < 1 for n in wanted):
        raise _core.ShapeError(
            f"interpolate: expected {axes} positive sizes, got {size if size is not None else scale}"
        )
    return wanted, given


def _nearest(x: Tensor, axis: int, n: int, step: float, exact: bool) -> Tensor:
    place = np.floor((np.arange(n, dtype=np.float32) + np.float32(0.5 if exact else 0)) * np.float32(step))
    index = np.minimum(place.astype(np.int64), x.shape[axis] - 1)
    return _core.index_select(x, axis, tensor(index, device=x.device))


def _linear(x: Tensor, axis: int, n: int, step: float, align_corners: bool) -> Tensor:
    extent = x.shape[axis]
    if align_corners:
        place = np.arange(n) * ((extent - 1) / (n - 1) if n > 1 else 0.0)
    else:
        place = np.maximum((np.arange(n) + 0.5) * step - 0.5, 0.0)
    low = np.minimum(np.floor(place).astype(np.int64), extent - 1)
    share = tensor((place - low).reshape(-1, *(1,) * (x.ndim - 1 - axis)), dtype=x.dtype, device=x.device)
    a, b = (
        _core.index_select(x, axis, tensor(index, device=x.device)) for index in (low, np.minimum(low + 1, extent - 1))
    )
    return a * (1.0 - share) + b * share


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resamples the axes of space of (N, C, ...) to `size`, or by `scale_factor`: one number, or one per axis.

    Parameters
    ----------
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear"}
        The linear ones take one, two and three axes of space.
    align_corners : bool, optional
        For the linear ones: the first and last elements stay where they are.
    recompute_scale_factor : bool, optional
        Steps follow from the sizes even where a scale factor was given.
    antialias : bool
        Must be False.

    Examples
    --------
    >>> x = vkml.tensor([[[1.0, 3.0]]])
    >>> vkml.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    >>> vkml.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    if mode not in ("nearest", "nearest-exact", *_LINEAR):
        raise _core.ShapeError(f"interpolate: mode: expected nearest, nearest-exact or a linear one, got {mode!r}")
    if antialias or input.ndim < 3 or _LINEAR.get(mode, input.ndim - 2) != input.ndim - 2 or not input.numel():
        raise _core.ShapeError(f"interpolate: expected an input that fits mode {mode!r}, got {input.shape}")
    if align_corners is not None and mode not in _LINEAR:
        raise _core.ShapeError(f"interpolate: align_corners: expected a linear mode, got {mode!r}")
    wanted, scales = _targets(input, size, scale_factor)
    for axis, (n, scale) in enumerate(zip(wanted, scales, strict=True), 2):
        kept = scale is None or recompute_scale_factor
        step = input.shape[axis] / n if kept else 1.0 / (scale or 1.0)
        if mode in _LINEAR:
            input = _linear(input, axis, n, step, bool(align_corners))
        else:
            input = _nearest(input, axis, n, step, mode == "nearest-exact")
    return input

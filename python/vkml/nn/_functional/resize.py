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


def _per_axis(wanted: str, value: Any, axes: int, kinds: tuple, least: int) -> tuple:
    """One finite positive number for each axis, from one or as many."""
    listed = value if isinstance(value, (tuple, list)) else (value,) * axes
    numbers = all(isinstance(n, kinds) and not isinstance(n, bool) for n in listed)
    text = f"interpolate: {wanted}, or {axes} of them, got {value!r:.100}"
    if not numbers:
        raise _core.DTypeError(text)
    if len(listed) != axes or not all(math.isfinite(n) and n > 0 and n >= least for n in listed):
        raise _core.ShapeError(text)
    return tuple(listed)


def _targets(x: Tensor, size: Any, scale: Any) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The extents wanted, and the scales given, per axis of space."""
    axes = x.ndim - 2
    if (size is None) == (scale is None):
        raise _core.ShapeError(f"interpolate: expected size or scale_factor, got {size} and {scale}")
    if size is not None:
        sizes = _per_axis("size: expected a positive int", size, axes, (int, np.integer), 1)
        return tuple(map(int, sizes)), (None,) * axes
    wanted = "scale_factor: expected a positive finite number"
    factors = _per_axis(wanted, scale, axes, (int, float, np.integer, np.floating), 0)
    extents = tuple(math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True))
    if min(extents) < 1:
        raise _core.ShapeError(f"interpolate: scale_factor: expected a result that is not empty, got {extents}")
    return extents, tuple(map(float, factors))


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
        raise _core.ShapeError(
            f"interpolate: mode: expected nearest, nearest-exact, linear, bilinear or trilinear, got {mode!r:.60}"
        )
    if antialias:
        raise _core.ShapeError(f"interpolate: antialias: expected False, got {antialias}")
    axes = _LINEAR.get(mode, max(input.ndim - 2, 1))
    if input.ndim != axes + 2:
        rank = f"rank {axes + 2}" if mode in _LINEAR else "rank 3 or more"
        raise _core.ShapeError(f"interpolate: expected {rank} for mode {mode!r}, got shape {input.shape}")
    if not input.numel():
        raise _core.ShapeError(f"interpolate: expected a tensor with elements, got shape {input.shape}")
    if mode in _LINEAR and not input.is_floating_point():
        raise _core.DTypeError(f"interpolate: expected a floating-point tensor for mode {mode!r}, got {input.dtype}")
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

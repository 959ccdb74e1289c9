"""Padding, windows, and other functions that move or pick elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import _core
from ..._core import Tensor
from ..._creation import tensor

__all__ = ["cosine_similarity", "fold", "normalize", "one_hot", "pad", "pixel_shuffle", "pixel_unshuffle", "unfold"]


def sizes(x: Any, n: int) -> tuple[int, ...]:
    """n sizes: one number stands for all of them."""
    if isinstance(x, int):
        return (x,) * n
    out = tuple(int(v) for v in x)
    if len(out) == 1:
        out *= n
    if len(out) != n:
        raise _core.ShapeError(f"expected one size or {n}, got {out}")
    return out


def batched(op: str, x: Tensor, rank: int, run: Callable[[Tensor], Tensor]) -> Tensor:
    """run(x), or for an x without a batch axis, run on a batch of one."""
    if x.ndim == rank:
        return run(x)
    if x.ndim != rank - 1:
        raise _core.ShapeError(f"{op}: expected rank {rank - 1} or {rank}, got {x.shape}")
    return run(x.unsqueeze(0)).squeeze(0)


def _reflected(i: np.ndarray, n: int) -> np.ndarray:
    return np.where(i < 0, -i, np.where(i >= n, 2 * (n - 1) - i, i))


_MODES: dict[str, tuple[Callable[[np.ndarray, int], np.ndarray], Callable[[int], int]]] = {
    # which element lies at a place outside, and how far outside a place may be
    "reflect": (_reflected, lambda n: n - 1),
    "replicate": (lambda i, n: np.clip(i, 0, n - 1), lambda n: n if n == 0 else 2**31),
    "circular": (lambda i, n: i % max(n, 1), lambda n: n),
}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Grows (or, with negative numbers, crops) axes: pad = (before, after) of the last axis, then of the one before it.

    Parameters
    ----------
    mode : {"constant", "reflect", "replicate", "circular"}
    value : float, optional
        What the constant mode fills with; 0 if left out.

    Examples
    --------
    >>> vkml.nn.functional.pad(vkml.tensor([1.0, 2.0, 3.0]), (1, 2))
    tensor([0., 1., 2., 3., 0., 0.])
    >>> vkml.nn.functional.pad(vkml.tensor([1.0, 2.0, 3.0]), (1, 2), mode="reflect")
    tensor([2., 1., 2., 3., 2., 1.])
    """
    pad = tuple(int(n) for n in pad)
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise _core.ShapeError(f"pad: pad: expected up to {input.ndim} pairs, got {pad}")
    if mode != "constant" and mode not in _MODES:
        raise _core.ShapeError(f"pad: mode: expected constant, {', '.join(_MODES)}, got {mode!r}")
    for i in range(0, len(pad), 2):
        axis = input.ndim - 1 - i // 2
        if mode == "constant":
            input = _pad_axis(input, axis, pad[i], pad[i + 1], 0.0 if value is None else value)
        else:
            input = _pad_by_index(input, axis, pad[i], pad[i + 1], mode)
    return input


def _pad_axis(x: Tensor, axis: int, before: int, after: int, value: float) -> Tensor:
    extent = x.shape[axis] + before + after
    if extent < 0:
        raise _core.ShapeError(f"pad: pad: expected at most {x.shape[axis]} cropped elements, got {(before, after)}")
    first, last = max(0, -before), max(0, -after)
    if first or last:
        x = x.narrow(axis, first, x.shape[axis] - first - last)

    def block(n: int) -> Tensor:
        shape = list(x.shape)
        shape[axis] = n
        return _core.full(shape, value, dtype=x.dtype, device=x.device)

    parts = [*([block(before)] if before > 0 else []), x, *([block(after)] if after > 0 else [])]
    return parts[0] if len(parts) == 1 else _core.cat(parts, axis)


def _pad_by_index(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    if before == after == 0:
        return x
    inside, most = _MODES[mode]
    n = x.shape[axis]
    if max(before, after) > most(n) or n + before + after < 0:
        raise _core.ShapeError(f"pad: pad: expected at most {most(n)} in mode {mode}, got {(before, after)}")
    return _core.index_select(x, axis, tensor(inside(np.arange(-before, n + after), n), device=x.device))


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of (N, C, H, W) as columns: (N, C kh kw, L).

    Examples
    --------
    >>> vkml.nn.functional.unfold(vkml.ones(1, 2, 4, 4), 3).shape
    (1, 18, 4)
    """
    return _core.im2col(input, sizes(kernel_size, 2), sizes(stride, 2), sizes(padding, 2), sizes(dilation, 2))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The transpose of unfold: columns (N, C kh kw, L) to (N, C, H, W); overlaps add.

    Examples
    --------
    >>> vkml.nn.functional.fold(vkml.ones(1, 4, 4), 3, 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    window = (sizes(kernel_size, 2), sizes(stride, 2), sizes(padding, 2), sizes(dilation, 2))
    return _core.col2im(input, sizes(output_size, 2), *window)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r^2, H, W) to (..., C, H r, W r).

    Examples
    --------
    >>> vkml.nn.functional.pixel_shuffle(vkml.ones(1, 8, 2, 3), 2).shape
    (1, 2, 4, 6)
    """
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise _core.ShapeError(f"pixel_shuffle: expected channels divisible by {r * r}, got {input.shape}")
    *lead, channels, height, width = input.shape
    y = input.reshape(-1, channels // (r * r), r, r, height, width).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(*lead, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) to (..., C r^2, H, W): undoes pixel_shuffle.

    Examples
    --------
    >>> vkml.nn.functional.pixel_unshuffle(vkml.ones(1, 2, 4, 6), 2).shape
    (1, 8, 2, 3)
    """
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise _core.ShapeError(f"pixel_unshuffle: expected sizes divisible by {r}, got {input.shape}")
    *lead, channels, height, width = input.shape
    y = input.reshape(-1, channels, height // r, r, width // r, r).permute(0, 1, 3, 5, 2, 4)
    return y.reshape(*lead, channels * r * r, height // r, width // r)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """int64 classes to rows with a single 1: (...) to (..., num_classes); -1 takes the largest class plus 1.

    Examples
    --------
    >>> vkml.nn.functional.one_hot(vkml.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.dtype != _core.int64:
        raise _core.DTypeError(f"one_hot: expected int64, got {input.dtype}")
    least, most = (int(input.amin().item()), int(input.amax().item())) if input.numel() else (0, num_classes - 1)
    classes = most + 1 if num_classes == -1 else num_classes
    if classes < 1 or least < 0 or most >= classes:
        raise _core.IndexError_(f"one_hot: expected classes in [0, {classes - 1}], got {least} to {most}")
    return (input.unsqueeze(-1) == _core.arange(classes, device=input.device)).long()


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """input / max(norm, eps) along dim.

    Examples
    --------
    >>> vkml.nn.functional.normalize(vkml.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / _core.clamp_min(_core.norm(input, p, dim, keepdim=True), eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along dim; norms count at least eps.

    Examples
    --------
    >>> vkml.nn.functional.cosine_similarity(vkml.tensor([[3.0, 4.0]]), vkml.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    norms = (_core.clamp_min(_core.norm(x, 2.0, dim, keepdim=True), eps) for x in (x1, x2))
    n1, n2 = norms
    return ((x1 / n1) * (x2 / n2)).sum(dim)

"""Pooling: the largest element or the mean of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _core
from ..._core import Tensor
from ..._creation import tensor
from .shape import batched, sizes

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def _as_row(op: str, x: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
    """run on a sequence as an image of one row."""
    return batched(op, x, 3, lambda y: run(y.unsqueeze(-2)).squeeze(-2))


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.max_pool1d(vkml.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
    tensor([[[3., 2.]]])
    """
    k, p, d = (sizes(x, 1) for x in (kernel_size, padding, dilation))
    s = k if stride is None else sizes(stride, 1)
    window = ((1, *k), (1, *s), (0, *p), (1, *d), ceil_mode)
    return _as_row("max_pool1d", input, lambda x: _core.max_pool2d(x, *window))


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.functional.max_pool2d(vkml.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    k, p, d = (sizes(x, 2) for x in (kernel_size, padding, dilation))
    s = k if stride is None else sizes(stride, 2)
    return batched("max_pool2d", input, 4, lambda x: _core.max_pool2d(x, k, s, p, d, ceil_mode))


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.avg_pool1d(vkml.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
    tensor([[[2., 1.]]])
    """
    k, p = sizes(kernel_size, 1), sizes(padding, 1)
    s = k if stride is None else sizes(stride, 1)
    window = ((1, *k), (1, *s), (0, *p), ceil_mode, count_include_pad)
    return _as_row("avg_pool1d", input, lambda x: _core.avg_pool2d(x, *window))


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.functional.avg_pool2d(vkml.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    k, p = sizes(kernel_size, 2), sizes(padding, 2)
    window = (k, k if stride is None else sizes(stride, 2), p, ceil_mode, count_include_pad, divisor_override)
    return batched("avg_pool2d", input, 4, lambda x: _core.avg_pool2d(x, *window))


# Volumes --------------------------------------------------------------------------------------------------------------
# Both kinds of window are products of a window along the depth and one of a plane: two passes of the 2-d operator.


def _in_two(x: Tensor, plane: Callable[[Tensor], Tensor], depth: Callable[[Tensor], Tensor]) -> Tensor:
    n, channels, layers, height, width = x.shape
    y = plane(x.reshape(n, channels * layers, height, width))
    height, width = y.shape[2:]
    y = depth(y.reshape(n, channels, layers, height * width))
    return y.reshape(n, channels, y.shape[2], height, width)


def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, D, H, W).

    Examples
    --------
    >>> vkml.nn.functional.max_pool3d(vkml.arange(16.0).reshape(1, 1, 2, 2, 4), 2).tolist()
    [[[[[13.0, 15.0]]]]]
    """
    k, p, d = (sizes(x, 3) for x in (kernel_size, padding, dilation))
    s = k if stride is None else sizes(stride, 3)

    def run(x: Tensor) -> Tensor:
        return _in_two(
            x,
            lambda y: _core.max_pool2d(y, k[1:], s[1:], p[1:], d[1:], ceil_mode),
            lambda y: _core.max_pool2d(y, (k[0], 1), (s[0], 1), (p[0], 0), (d[0], 1), ceil_mode),
        )

    return batched("max_pool3d", input, 5, run)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of (N, C, D, H, W).

    Examples
    --------
    >>> vkml.nn.functional.avg_pool3d(vkml.arange(16.0).reshape(1, 1, 2, 2, 4), 2).tolist()
    [[[[[6.5, 8.5]]]]]
    """
    k, p = sizes(kernel_size, 3), sizes(padding, 3)
    s = k if stride is None else sizes(stride, 3)
    how = (ceil_mode, count_include_pad)
    first = None if divisor_override is None else 1  # the sum of a plane; then one division

    def run(x: Tensor) -> Tensor:
        return _in_two(
            x,
            lambda y: _core.avg_pool2d(y, k[1:], s[1:], p[1:], *how, first),
            lambda y: _core.avg_pool2d(y, (k[0], 1), (s[0], 1), (p[0], 0), *how, divisor_override),
        )

    return batched("avg_pool3d", input, 5, run)


# Adaptive -------------------------------------------------------------------------------------------------------------
# Window i of n covers floor(i extent / n) to ceil((i + 1) extent / n), so windows differ in length and may overlap.


def _targets(op: str, output_size: Any, image: tuple[int, ...]) -> tuple[int, ...]:
    wanted = (output_size,) * len(image) if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(wanted) != len(image) or any(n is not None and n < 1 for n in wanted) or min(image) < 1:
        raise _core.ShapeError(f"{op}: output_size: expected {len(image)} sizes from {image}, got {output_size}")
    return tuple(extent if n is None else n for n, extent in zip(wanted, image, strict=True))


def _windows(x: Tensor, axis: int, n: int) -> tuple[Tensor, np.ndarray]:
    """The elements of n windows along axis, as a new axis after it, and which of them count; the last one repeats."""
    extent = x.shape[axis]
    first = np.arange(n) * extent // n
    length = -(-np.arange(1, n + 1) * extent // n) - first
    place = np.arange(length.max())
    index = first[:, None] + np.minimum(place, length[:, None] - 1)
    rows = _core.index_select(x, axis, tensor(index.ravel(), device=x.device))
    return _core.unflatten(rows, axis, index.shape), place < length[:, None]


def _mean_along(x: Tensor, axis: int, n: int) -> Tensor:
    rows, counts = _windows(x, axis, n)
    beside = (1,) * (x.ndim - 1 - axis)
    kept = tensor(counts.reshape(*counts.shape, *beside), device=x.device)
    lengths = tensor(counts.sum(1).astype(np.float64), dtype=x.dtype, device=x.device)
    return _core.where(kept, rows, 0.0).sum(axis + 1) / lengths.reshape(n, *beside)


def _max_along(x: Tensor, axis: int, n: int) -> Tensor:
    return _core.max(_windows(x, axis, n)[0], axis + 1)[0]


def _adaptive(
    op: str,
    x: Tensor,
    output_size: Any,
    regular: Callable[..., Tensor],
    along: Callable[[Tensor, int, int], Tensor],
) -> Tensor:
    wanted = _targets(op, output_size, x.shape[2:])
    if all(extent % n == 0 for extent, n in zip(x.shape[2:], wanted, strict=True)):
        return regular(x, tuple(extent // n for extent, n in zip(x.shape[2:], wanted, strict=True)))
    narrow = x.dtype in (_core.float16, _core.bfloat16)
    y = x.to(_core.float32) if narrow else x
    for axis, n in enumerate(wanted, 2):
        if n != y.shape[axis]:
            y = along(y, axis, n)
    return y.to(x.dtype) if narrow else y


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool1d(vkml.tensor([[[1.0, 2.0, 3.0]]]), 2)
    tensor([[[1.5000, 2.5000]]])
    """
    op = "adaptive_avg_pool1d"
    return batched(op, input, 3, lambda x: _adaptive(op, x, output_size, avg_pool1d, _mean_along))


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool2d(vkml.arange(6.0).reshape(1, 1, 2, 3), (1, 2))
    tensor([[[[2., 3.]]]])
    """
    op = "adaptive_avg_pool2d"
    return batched(op, input, 4, lambda x: _adaptive(op, x, output_size, avg_pool2d, _mean_along))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool3d(vkml.arange(12.0).reshape(1, 1, 2, 2, 3), (1, 1, 2)).tolist()
    [[[[[5.0, 6.0]]]]]
    """
    op = "adaptive_avg_pool3d"
    return batched(op, input, 5, lambda x: _adaptive(op, x, output_size, avg_pool3d, _mean_along))


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The largest elements of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool1d(vkml.tensor([[[1.0, 2.0, 3.0]]]), 2)
    tensor([[[2., 3.]]])
    """
    op = "adaptive_max_pool1d"
    return batched(op, input, 3, lambda x: _adaptive(op, x, output_size, max_pool1d, _max_along))


def adaptive_max_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The largest elements of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool2d(vkml.arange(6.0).reshape(1, 1, 2, 3), (1, 2))
    tensor([[[[4., 5.]]]])
    """
    op = "adaptive_max_pool2d"
    return batched(op, input, 4, lambda x: _adaptive(op, x, output_size, max_pool2d, _max_along))


def adaptive_max_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The largest of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool3d(vkml.arange(12.0).reshape(1, 1, 2, 2, 3), (1, 1, 2)).tolist()
    [[[[[10.0, 11.0]]]]]
    """
    op = "adaptive_max_pool3d"
    return batched(op, input, 5, lambda x: _adaptive(op, x, output_size, max_pool3d, _max_along))

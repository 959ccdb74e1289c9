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


def _in_two(x: Tensor, plane: Callable[[Tensor], Tensor], depth: Callable[[Tensor], Tensor]) -> Tensor:
    """Both kinds of window are products of one of a plane and one along the depth: two passes of the 2-d operator."""
    n, channels, layers, height, width = x.shape
    y = plane(x.reshape(n, channels * layers, height, width))
    height, width = y.shape[2:]
    y = depth(y.reshape(n, channels, layers, height * width))
    return y.reshape(n, channels, y.shape[2], height, width)


def _pool(op: str, x: Tensor, window: tuple, plane: Callable[..., Tensor], depth: Callable[..., Tensor]) -> Tensor:
    """A window of 1 to 3 axes (kernel, stride, padding, dilation) by operators on images; `depth` is the last one."""
    axes, along = len(window[0]), (1, 1, 0, 1)  # of an axis that nothing walks along
    if axes == 1:
        row = [(n, *w) for n, w in zip(along, window, strict=False)]
        return batched(op, x, 3, lambda y: depth(y.unsqueeze(-2), *row).squeeze(-2))
    if axes == 2:
        return batched(op, x, 4, lambda y: depth(y, *window))
    image, column = [w[1:] for w in window], [(w[0], n) for n, w in zip(along, window, strict=False)]
    return batched(op, x, 5, lambda y: _in_two(y, lambda z: plane(z, *image), lambda z: depth(z, *column)))


def _max_pool(axes: int, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Tensor:
    k, p, d = (sizes(v, axes) for v in (kernel, padding, dilation))
    s = k if stride is None else sizes(stride, axes)

    def largest(y: Tensor, k: Any, s: Any, p: Any, d: Any) -> Tensor:
        return _core.max_pool2d(y, k, s, p, d, ceil_mode)

    return _pool(f"max_pool{axes}d", x, (k, s, p, d), largest, largest)


def _avg_pool(
    axes: int, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, pads: bool, divisor: int | None = None
) -> Tensor:
    k, p = sizes(kernel, axes), sizes(padding, axes)
    s = k if stride is None else sizes(stride, axes)

    def mean(y: Tensor, k: Any, s: Any, p: Any, by: int | None = divisor) -> Tensor:
        return _core.avg_pool2d(y, k, s, p, ceil, pads, by)

    def plane(y: Tensor, k: Any, s: Any, p: Any) -> Tensor:  # with a divisor the sum; then one division
        return mean(y, k, s, p, None if divisor is None else 1)

    return _pool(f"avg_pool{axes}d", x, (k, s, p), plane, mean)


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.max_pool1d(vkml.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
    tensor([[[3., 2.]]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.functional.max_pool2d(vkml.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


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
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


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
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window of (N, C, D, H, W).

    Examples
    --------
    >>> vkml.nn.functional.max_pool3d(vkml.arange(16.0).reshape(1, 1, 2, 2, 4), 2).tolist()
    [[[[[13.0, 15.0]]]]]
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


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
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


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


_KINDS: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, int, int], Tensor]]] = {
    # where windows are alike, and where they are not
    "avg": (lambda x, kernel: _avg_pool(len(kernel), x, kernel, None, 0, False, True), _mean_along),
    "max": (lambda x, kernel: _max_pool(len(kernel), x, kernel, None, 0, 1, False), _max_along),
}


def _adaptive(kind: str, axes: int, input: Tensor, output_size: Any) -> Tensor:
    op, (regular, along) = f"adaptive_{kind}_pool{axes}d", _KINDS[kind]

    def run(x: Tensor) -> Tensor:
        wanted = _targets(op, output_size, x.shape[2:])
        if all(extent % n == 0 for extent, n in zip(x.shape[2:], wanted, strict=True)):
            return regular(x, tuple(extent // n for extent, n in zip(x.shape[2:], wanted, strict=True)))
        narrow = x.dtype in (_core.float16, _core.bfloat16)
        y = x.to(_core.float32) if narrow else x
        for axis, n in enumerate(wanted, 2):
            if n != y.shape[axis]:
                y = along(y, axis, n)
        return y.to(x.dtype) if narrow else y

    return batched(op, input, axes + 2, run)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool1d(vkml.tensor([[[1.0, 2.0, 3.0]]]), 2)
    tensor([[[1.5000, 2.5000]]])
    """
    return _adaptive("avg", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool2d(vkml.arange(6.0).reshape(1, 1, 2, 3), (1, 2))
    tensor([[[[2., 3.]]]])
    """
    return _adaptive("avg", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_avg_pool3d(vkml.arange(12.0).reshape(1, 1, 2, 2, 3), (1, 1, 2)).tolist()
    [[[[[5.0, 6.0]]]]]
    """
    return _adaptive("avg", 3, input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The largest elements of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool1d(vkml.tensor([[[1.0, 2.0, 3.0]]]), 2)
    tensor([[[2., 3.]]])
    """
    return _adaptive("max", 1, input, output_size)


def adaptive_max_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The largest elements of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool2d(vkml.arange(6.0).reshape(1, 1, 2, 3), (1, 2))
    tensor([[[[4., 5.]]]])
    """
    return _adaptive("max", 2, input, output_size)


def adaptive_max_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The largest of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.functional.adaptive_max_pool3d(vkml.arange(12.0).reshape(1, 1, 2, 2, 3), (1, 1, 2)).tolist()
    [[[[[10.0, 11.0]]]]]
    """
    return _adaptive("max", 3, input, output_size)

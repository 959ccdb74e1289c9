"""Convolutions. One implementation each, on images: a sequence is an image of one row, a volume a stack of images."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from .shape import batched, pad, sizes

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"]


def _check_ranks(op: str, x: Tensor, weight: Tensor, axes: int) -> None:
    if weight.ndim != axes + 2:
        raise _core.ShapeError(f"{op}: weight: expected rank {axes + 2}, got {weight.shape}")
    if x.ndim not in (axes + 1, axes + 2):
        raise _core.ShapeError(f"{op}: expected rank {axes + 1} or {axes + 2}, got {x.shape}")


def _row(x: Any, beside: int) -> Any:
    """The sizes of an image of one row, from those of a sequence."""
    return x if isinstance(x, str) else (beside, *sizes(x, 1))


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, L) with (C_out, C / groups, k). padding may be "valid" or "same".

    Examples
    --------
    >>> F = vkml.nn.functional
    >>> F.conv1d(vkml.tensor([[[1.0, 2.0, 3.0, 4.0]]]), vkml.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -1., -1.]]])
    """
    _check_ranks("conv1d", input, weight, 1)
    window = (_row(stride, 1), _row(padding, 0), _row(dilation, 1), groups)
    return _core.conv2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, *window).squeeze(-2)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, H, W) with (C_out, C / groups, kh, kw). padding may be "valid" or "same".

    Examples
    --------
    >>> vkml.nn.functional.conv2d(vkml.ones(1, 1, 3, 3), vkml.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    if not isinstance(padding, str):
        padding = sizes(padding, 2)
    return _core.conv2d(input, weight, bias, sizes(stride, 2), padding, sizes(dilation, 2), groups)


def _volume_padding(padding: Any, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> list:
    """(before, after) of each axis."""
    if not isinstance(padding, str):
        return [(p, p) for p in sizes(padding, 3)]
    if padding == "valid":
        return [(0, 0)] * 3
    if padding != "same" or stride != (1, 1, 1):
        raise _core.ShapeError(f"conv3d: padding: expected sizes, valid, or same with stride 1, got {padding!r}")
    full = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    return [(n // 2, n - n // 2) for n in full]


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, D, H, W) with (C_out, C / groups, kd, kh, kw). padding may be "valid" or "same".

    Runs as conv2d over all depths at once, the depth taps as channels.

    Examples
    --------
    >>> vkml.nn.functional.conv3d(vkml.ones(1, 1, 3, 3, 3), vkml.ones(1, 1, 2, 2, 3)).tolist()
    [[[[[12.0], [12.0]], [[12.0], [12.0]]]]]
    """
    _check_ranks("conv3d", input, weight, 3)
    stride, dilation = sizes(stride, 3), sizes(dilation, 3)
    kernel = weight.shape[2:]
    margins = _volume_padding(padding, kernel, stride, dilation)

    def run(x: Tensor) -> Tensor:
        whole = pad(x, [n for pair in reversed(margins) for n in pair])
        n, channels, depth, height, width = whole.shape
        count = (depth - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
        if count < 1:
            raise _core.ShapeError(f"conv3d: expected a window inside the padded depth {depth}, got {kernel}")
        reach = (count - 1) * stride[0] + 1
        taps = [whole[:, :, i * dilation[0] : i * dilation[0] + reach : stride[0]] for i in range(kernel[0])]
        images = _core.stack(taps, 2).permute(0, 3, 1, 2, 4, 5).reshape(n * count, channels * kernel[0], height, width)
        flat = weight.reshape(weight.shape[0], -1, *kernel[1:])
        y = _core.conv2d(images, flat, bias, stride[1:], (0, 0), dilation[1:], groups)
        return y.reshape(n, count, *y.shape[1:]).transpose(1, 2)

    return batched("conv3d", input, 5, run)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its input, as a function: (N, C, L) to (N, C_out, L').

    Examples
    --------
    >>> vkml.nn.functional.conv_transpose1d(vkml.ones(1, 1, 2), vkml.ones(1, 1, 3), stride=2)
    tensor([[[1., 1., 2., 1., 1.]]])
    """
    _check_ranks("conv_transpose1d", input, weight, 1)
    window = (_row(stride, 1), _row(padding, 0), _row(output_padding, 0), groups, _row(dilation, 1))
    return conv_transpose2d(input.unsqueeze(-2), weight.unsqueeze(-2), bias, *window).squeeze(-2)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its input, as a function: weight is (C, C_out / groups, kh, kw).

    Examples
    --------
    >>> vkml.nn.functional.conv_transpose2d(vkml.ones(1, 1, 2, 2), vkml.ones(1, 1, 3, 3), stride=2).shape
    (1, 1, 5, 5)
    """
    window = (sizes(stride, 2), sizes(padding, 2), sizes(output_padding, 2), groups, sizes(dilation, 2))
    return batched("conv_transpose2d", input, 4, lambda x: _core.conv_transpose2d(x, weight, bias, *window))

"""Convolution and pooling layers."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .layers import affine, parameter
from .module import Module

__all__ = ["AvgPool2d", "Conv1d", "Conv2d", "ConvTranspose2d", "MaxPool2d"]

Pair = int | tuple[int, int]


def pair(x: Any) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else (int(x[0]), int(x[1]))


class _Conv(Module):
    def __init__(
        self, channels: tuple[int, int], kernel: tuple[int, ...], groups: int, bias: bool, transposed: bool, kind: dict
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.in_channels, self.out_channels = channels
        if groups < 1 or channels[0] % groups or channels[1] % groups:
            raise _core.ShapeError(
                f"{name}: groups: expected a divisor of {channels[0]} and {channels[1]}, got {groups}"
            )
        self.kernel_size, self.groups = kernel, groups
        first, second = channels if transposed else channels[::-1]
        self.weight = parameter(first, second // groups, *kernel, **kind)
        self.register_parameter("bias", parameter(channels[1], **kind) if bias else None)
        fan_in = self.weight.shape[1]
        for extent in kernel:
            fan_in *= extent
        affine(fan_in, self.weight, self.bias)

    def extra_repr(self) -> str:
        window = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{self.in_channels}, {self.out_channels}, {window}"


class Conv2d(_Conv):
    """(N, C, H, W) -> (N, out_channels, H', W').

    Examples
    --------
    >>> vkml.nn.Conv2d(3, 8, kernel_size=3, padding=1)(vkml.randn((2, 3, 8, 8))).shape
    (2, 8, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Any = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise _core.ShapeError(f"Conv2d: padding_mode: expected zeros, got {padding_mode!r}")
        super().__init__(
            (in_channels, out_channels), pair(kernel_size), groups, bias, False, {"device": device, "dtype": dtype}
        )
        self.stride, self.dilation = pair(stride), pair(dilation)
        self.padding = self._margin(padding) if isinstance(padding, str) else pair(padding)

    def _margin(self, word: str) -> tuple[int, int]:
        if word == "valid":
            return 0, 0
        full = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        if word != "same" or self.stride != (1, 1) or full[0] % 2 or full[1] % 2:
            raise _core.ShapeError(
                f"Conv2d: padding: expected valid, or same for an odd kernel of stride 1, got {word!r}"
            )
        return full[0] // 2, full[1] // 2

    def forward(self, x: Tensor) -> Tensor:
        return _core.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """(N, C, L) -> (N, out_channels, L').

    Examples
    --------
    >>> vkml.nn.Conv1d(3, 8, kernel_size=3)(vkml.randn((2, 3, 10))).shape
    (2, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise _core.ShapeError(f"Conv1d: padding_mode: expected zeros, got {padding_mode!r}")
        one = [x if isinstance(x, int) else x[0] for x in (kernel_size, stride, padding, dilation)]
        super().__init__(
            (in_channels, out_channels), (one[0],), groups, bias, False, {"device": device, "dtype": dtype}
        )
        self.stride, self.padding, self.dilation = one[1:]

    def forward(self, x: Tensor) -> Tensor:
        window = ((1, self.stride), (0, self.padding), (1, self.dilation))
        return _core.conv2d(x.unsqueeze(-2), self.weight.unsqueeze(-2), self.bias, *window, self.groups).squeeze(-2)


class ConvTranspose2d(_Conv):
    """The gradient of Conv2d as a layer: (N, C, H, W) -> (N, out_channels, H', W'), larger for stride > 1.

    Examples
    --------
    >>> vkml.nn.ConvTranspose2d(1, 1, kernel_size=3, stride=2)(vkml.ones(1, 1, 2, 2)).shape
    (1, 1, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        output_padding: Pair = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Pair = 1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            (in_channels, out_channels), pair(kernel_size), groups, bias, True, {"device": device, "dtype": dtype}
        )
        self.stride, self.padding, self.dilation = pair(stride), pair(padding), pair(dilation)
        self.output_padding = pair(output_padding)
        for axis in (0, 1):
            if self.output_padding[axis] >= max(self.stride[axis], self.dilation[axis]):
                raise _core.ShapeError(
                    f"ConvTranspose2d: output_padding: expected less than the stride, got {self.output_padding}"
                )

    def forward(self, x: Tensor) -> Tensor:
        window = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return _core.conv_transpose2d(x, self.weight, self.bias, *window)


class MaxPool2d(Module):
    """The largest element of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.MaxPool2d(2)(vkml.arange(16.0).reshape(1, 1, 4, 4)).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = pair(kernel_size), pair(kernel_size if stride is None else stride)
        self.padding, self.dilation, self.ceil_mode = pair(padding), pair(dilation), ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return _core.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.AvgPool2d(2)(vkml.arange(16.0).reshape(1, 1, 4, 4)).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = pair(kernel_size), pair(kernel_size if stride is None else stride)
        self.padding, self.ceil_mode, self.count_include_pad = pair(padding), ceil_mode, count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        return _core.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from .. import _core
from .._core import Tensor
from . import functional as F
from ._functional.shape import sizes
from .layers import about_input, affine, parameter
from .module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d"]

Sizes = int | tuple[int, ...]


class _ConvNd(Module):
    """What all convolutions hold: a weight over `_axes` axes of space, a bias, and how the window walks."""

    _axes: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]
    _transposed: ClassVar[bool] = False

    def _build(
        self, channels: tuple[int, int], kernel_size: Sizes, groups: int, bias: bool, device: Any, dtype: Any
    ) -> None:
        self.in_channels, self.out_channels = channels
        if groups < 1 or channels[0] % groups or channels[1] % groups:
            raise _core.ShapeError(
                f"{type(self).__name__}: groups: expected a divisor of {channels[0]} and {channels[1]}, got {groups}"
            )
        self.kernel_size, self.groups = sizes(kernel_size, self._axes), groups
        first, second = channels if self._transposed else channels[::-1]
        self.weight = parameter(first, second // groups, *self.kernel_size, device=device, dtype=dtype)
        self.register_parameter("bias", parameter(channels[1], device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew."""
        affine(self.weight.shape[1] * math.prod(self.kernel_size), self.weight, self.bias)

    def _window(self) -> tuple:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        try:
            return type(self)._function(x, *self._window())
        except (_core.ShapeError, _core.DTypeError) as error:
            raise about_input(self, error, x, -1 - self._axes, self.in_channels, "channels") from None

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        text += f", padding={self.padding!r}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        return text + (f", groups={self.groups}" if self.groups != 1 else "")


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise _core.ShapeError(f"{type(self).__name__}: padding_mode: expected zeros, got {padding_mode!r}")
        self.stride, self.dilation = sizes(stride, self._axes), sizes(dilation, self._axes)
        if isinstance(padding, str):
            if padding not in ("valid", "same") or (padding == "same" and any(s != 1 for s in self.stride)):
                raise _core.ShapeError(
                    f"{type(self).__name__}: padding: expected sizes, valid, or same with stride 1, got {padding!r}"
                )
            self.padding: Any = padding
        else:
            self.padding = sizes(padding, self._axes)
        self._build((in_channels, out_channels), kernel_size, groups, bias, device, dtype)

    def _window(self) -> tuple:
        return self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups


class Conv1d(_Conv):
    """(N, C, L) -> (N, out_channels, L').

    Examples
    --------
    >>> vkml.nn.Conv1d(3, 8, kernel_size=3)(vkml.randn((2, 3, 10))).shape
    (2, 8, 8)
    """

    _axes = 1
    _function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """(N, C, H, W) -> (N, out_channels, H', W').

    Examples
    --------
    >>> vkml.nn.Conv2d(3, 8, kernel_size=3, padding=1)(vkml.randn((2, 3, 8, 8))).shape
    (2, 8, 8, 8)
    """

    _axes = 2
    _function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """(N, C, D, H, W) -> (N, out_channels, D', H', W').

    Examples
    --------
    >>> vkml.nn.Conv3d(1, 4, kernel_size=3)(vkml.randn((2, 1, 5, 6, 7))).shape
    (2, 4, 3, 4, 5)
    """

    _axes = 3
    _function = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        window = (sizes(x, self._axes) for x in (stride, padding, output_padding, dilation))
        self.stride, self.padding, self.output_padding, self.dilation = window
        for extra, step, spread in zip(self.output_padding, self.stride, self.dilation, strict=True):
            if extra >= max(step, spread):
                raise _core.ShapeError(
                    f"{type(self).__name__}: output_padding: expected less than the stride, got {self.output_padding}"
                )
        self._build((in_channels, out_channels), kernel_size, groups, bias, device, dtype)

    def _window(self) -> tuple:
        return self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation


class ConvTranspose1d(_ConvTranspose):
    """The gradient of Conv1d as a layer: (N, C, L) -> (N, out_channels, L'), longer for stride > 1.

    Examples
    --------
    >>> vkml.nn.ConvTranspose1d(1, 1, kernel_size=3, stride=2)(vkml.ones(1, 1, 2)).shape
    (1, 1, 5)
    """

    _axes = 1
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """The gradient of Conv2d as a layer: (N, C, H, W) -> (N, out_channels, H', W'), larger for stride > 1.

    Examples
    --------
    >>> vkml.nn.ConvTranspose2d(1, 1, kernel_size=3, stride=2)(vkml.ones(1, 1, 2, 2)).shape
    (1, 1, 5, 5)
    """

    _axes = 2
    _function = staticmethod(F.conv_transpose2d)

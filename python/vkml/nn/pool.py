"""Pooling layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._core import Tensor
from . import functional as F
from ._functional.shape import sizes
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]

Sizes = int | tuple[int, ...]


class _Pool(Module):
    _axes: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]

    def _window(self) -> tuple:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, *self._window())

    def _walk(self, kernel_size: Sizes, stride: Sizes | None, padding: Sizes) -> None:
        self.kernel_size, self.padding = sizes(kernel_size, self._axes), sizes(padding, self._axes)
        self.stride = self.kernel_size if stride is None else sizes(stride, self._axes)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self._walk(kernel_size, stride, padding)
        self.dilation, self.ceil_mode = sizes(dilation, self._axes), ceil_mode

    def _window(self) -> tuple:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode


class MaxPool1d(_MaxPool):
    """The largest element of every window of (N, C, L).

    Examples
    --------
    >>> vkml.nn.MaxPool1d(2)(vkml.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[3., 2.]]])
    """

    _axes = 1
    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.MaxPool2d(2)(vkml.arange(16.0).reshape(1, 1, 4, 4)).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    _axes = 2
    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of every window of (N, C, D, H, W).

    Examples
    --------
    >>> vkml.nn.MaxPool3d(2)(vkml.arange(16.0).reshape(1, 1, 2, 2, 4)).tolist()
    [[[[[13.0, 15.0]]]]]
    """

    _axes = 3
    _function = staticmethod(F.max_pool3d)


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self._walk(kernel_size, stride, padding)
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def _window(self) -> tuple:
        how = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return self.kernel_size, self.stride, self.padding, *how


class AvgPool1d(_AvgPool):
    """The mean of every window of (N, C, L).

    Examples
    --------
    >>> vkml.nn.AvgPool1d(2)(vkml.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[2., 1.]]])
    """

    _axes = 1
    _function = staticmethod(F.avg_pool1d)

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)

    def _window(self) -> tuple:
        return super()._window()[:-1]


class AvgPool2d(_AvgPool):
    """The mean of every window of (N, C, H, W).

    Examples
    --------
    >>> vkml.nn.AvgPool2d(2)(vkml.arange(16.0).reshape(1, 1, 4, 4)).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """

    _axes = 2
    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of every window of (N, C, D, H, W).

    Examples
    --------
    >>> vkml.nn.AvgPool3d(2)(vkml.arange(16.0).reshape(1, 1, 2, 2, 4)).tolist()
    [[[[[6.5, 8.5]]]]]
    """

    _axes = 3
    _function = staticmethod(F.avg_pool3d)


class _Adaptive(Module):
    _function: ClassVar[Callable[..., Tensor]]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The means of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.AdaptiveAvgPool1d(2)(vkml.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[1.5000, 2.5000]]])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """The means of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.AdaptiveAvgPool2d(1)(vkml.arange(4.0).reshape(1, 1, 2, 2)).tolist()
    [[[[1.5]]]]
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """The means of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.AdaptiveAvgPool3d(1)(vkml.arange(8.0).reshape(1, 1, 2, 2, 2)).tolist()
    [[[[[3.5]]]]]
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_Adaptive):
    """The largest elements of output_size windows that cover (N, C, L).

    Examples
    --------
    >>> vkml.nn.AdaptiveMaxPool1d(2)(vkml.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[2., 3.]]])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_Adaptive):
    """The largest elements of output_size (rows, columns) windows that cover (N, C, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.AdaptiveMaxPool2d(1)(vkml.arange(4.0).reshape(1, 1, 2, 2)).tolist()
    [[[[3.0]]]]
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_Adaptive):
    """The largest of output_size (layers, rows, columns) windows that cover (N, C, D, H, W); None keeps an extent.

    Examples
    --------
    >>> vkml.nn.AdaptiveMaxPool3d(1)(vkml.arange(8.0).reshape(1, 1, 2, 2, 2)).tolist()
    [[[[[7.0]]]]]
    """

    _function = staticmethod(F.adaptive_max_pool3d)

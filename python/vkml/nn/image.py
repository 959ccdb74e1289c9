"""Layers that grow, crop or resample images and sequences."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Tensor
from . import functional as F
from ._functional.shape import sizes
from .module import Module

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "PixelShuffle",
    "PixelUnshuffle",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "Upsample",
    "ZeroPad1d",
    "ZeroPad2d",
]

Sizes = int | tuple[int, ...]


class PixelShuffle(Module):
    """(..., C r^2, H, W) -> (..., C, H r, W r).

    Examples
    --------
    >>> vkml.nn.PixelShuffle(2)(vkml.ones(1, 8, 2, 3)).shape
    (1, 2, 4, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(..., C, H r, W r) -> (..., C r^2, H, W).

    Examples
    --------
    >>> vkml.nn.PixelUnshuffle(2)(vkml.ones(1, 2, 4, 6)).shape
    (1, 8, 2, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class Upsample(Module):
    """Resamples the axes of space to `size`, or by `scale_factor`: see `functional.interpolate`.

    Examples
    --------
    >>> vkml.nn.Upsample(scale_factor=2)(vkml.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        how = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(x, self.size, self.scale_factor, *how)

    def extra_repr(self) -> str:
        target = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{target}, mode={self.mode!r}"


class _Pad(Module):
    _sides: ClassVar[int]
    _mode: ClassVar[str]
    value: float | None = None

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        self.padding = sizes(padding, self._sides)

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A value beside the last axis: one number of elements, or (left, right).

    Examples
    --------
    >>> vkml.nn.ConstantPad1d((1, 2), 7.0)(vkml.ones(1, 1, 1))
    tensor([[[7., 1., 7., 7.]]])
    """

    _sides = 2


class ConstantPad2d(_ConstantPad):
    """A value around the last two axes: one number of elements, or (left, right, top, bottom).

    Examples
    --------
    >>> vkml.nn.ConstantPad2d((1, 0, 0, 1), 7.0)(vkml.ones(1, 1, 1, 1))
    tensor([[[[7., 1.],
              [7., 7.]]]])
    """

    _sides = 4


class ZeroPad1d(_Pad):
    """Zeros beside the last axis: one number of elements, or (left, right).

    Examples
    --------
    >>> vkml.nn.ZeroPad1d((1, 2))(vkml.ones(1, 1, 1))
    tensor([[[0., 1., 0., 0.]]])
    """

    _sides, _mode = 2, "constant"


class ZeroPad2d(_Pad):
    """Zeros around the last two axes: one number of elements, or (left, right, top, bottom).

    Examples
    --------
    >>> vkml.nn.ZeroPad2d((1, 0, 0, 1))(vkml.ones(1, 1, 1, 1))
    tensor([[[[0., 1.],
              [0., 0.]]]])
    """

    _sides, _mode = 4, "constant"


class ReflectionPad1d(_Pad):
    """The sequence mirrored at its ends, which are not repeated: one number of elements, or (left, right).

    Examples
    --------
    >>> vkml.nn.ReflectionPad1d(2)(vkml.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[[3., 2., 1., 2., 3., 2., 1.]]])
    """

    _sides, _mode = 2, "reflect"


class ReflectionPad2d(_Pad):
    """The image mirrored at its edges, which are not repeated: one number, or (left, right, top, bottom).

    Examples
    --------
    >>> vkml.nn.ReflectionPad2d((1, 0, 0, 0))(vkml.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[2., 1., 2.]]]])
    """

    _sides, _mode = 4, "reflect"


class ReplicationPad1d(_Pad):
    """The sequence's ends repeated: one number of elements, or (left, right).

    Examples
    --------
    >>> vkml.nn.ReplicationPad1d((2, 1))(vkml.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 1., 2., 2.]]])
    """

    _sides, _mode = 2, "replicate"


class ReplicationPad2d(_Pad):
    """The image's edges repeated: one number of elements, or (left, right, top, bottom).

    Examples
    --------
    >>> vkml.nn.ReplicationPad2d((1, 0, 0, 0))(vkml.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2.]]]])
    """

    _sides, _mode = 4, "replicate"

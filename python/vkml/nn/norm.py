"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .. import _core
from .._core import Tensor
from .._creation import ones, zeros
from ..autograd import no_grad
from . import functional as F
from .module import Module, Parameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
]


def _sizes(op: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    out = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if not out:
        raise _core.ShapeError(f"{op}: normalized_shape: expected at least one size, got {shape}")
    return out


def _pair(
    shape: Any, affine: bool, bias: bool | None, device: Any, dtype: Any
) -> tuple[Parameter | None, Parameter | None]:
    dtype = _core.float32 if dtype is None else dtype
    weight = Parameter(ones(shape, device=device, dtype=dtype)) if affine else None
    return weight, Parameter(zeros(shape, device=device, dtype=dtype)) if affine and bias else None


class _RowNorm(Module):
    def __init__(
        self, shape: int | Sequence[int], eps: float | None, affine: bool, bias: bool | None, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _sizes(type(self).__name__, shape), eps, affine
        weight, shift = _pair(self.normalized_shape, affine, bool(bias), device, dtype)
        self.register_parameter("weight", weight)
        if bias is not None:
            self.register_parameter("bias", shift)

    def _checked(self, x: Tensor) -> tuple[int, ...]:
        n = len(self.normalized_shape)
        if x.shape[x.ndim - n :] != self.normalized_shape or x.ndim < n:
            raise _core.ShapeError(
                f"{type(self).__name__}: expected an input that ends in {self.normalized_shape}, got {x.shape}"
            )
        return self.normalized_shape

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_RowNorm):
    """(x - mean) / sqrt(var + eps) over the trailing axes of `normalized_shape`, then weight and bias.

    Examples
    --------
    >>> vkml.nn.LayerNorm(2)(vkml.tensor([[1.0, 3.0]])).round()
    tensor([[-1.,  1.]], grad_fn=<round>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self._checked(x), self.weight, self.bias, self.eps or 0.0)


class RMSNorm(_RowNorm):
    """x / sqrt(mean(x^2) + eps) over the trailing axes, then weight. Without eps the dtype's epsilon counts.

    Examples
    --------
    >>> vkml.nn.RMSNorm(2)(vkml.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]], grad_fn=<rms_norm>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, None, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self._checked(x), self.weight, self.eps)


class GroupNorm(Module):
    """Normalises groups of channels of (N, C, ...), then scales and shifts each channel.

    Examples
    --------
    >>> vkml.nn.GroupNorm(2, 4)(vkml.randn((3, 4, 5))).shape
    (3, 4, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise _core.ShapeError(f"GroupNorm: num_groups: expected a divisor of {num_channels}, got {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        weight, bias = _pair(num_channels, affine, True, device, dtype)
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise _core.ShapeError(f"GroupNorm: expected shape (N, {self.num_channels}, ...), got {x.shape}")
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _ChannelNorm(Module):
    """Per-channel weight and bias, and running statistics where they are tracked."""

    _axes: ClassVar[tuple[int, ...]]  # axes of space there may be
    _text: ClassVar[str]  # the shapes that are taken, for errors

    def _build(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        weight, bias = _pair(num_features, affine, True, device, dtype)
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)
        tracked = track_running_stats
        kind = {"device": device, "dtype": _core.float32 if dtype is None else dtype}
        self.register_buffer("running_mean", zeros(num_features, **kind) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **kind) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype=_core.int64, device=device) if tracked else None)

    def _check(self, x: Tensor) -> None:
        if x.ndim - 2 not in self._axes or x.shape[1] != self.num_features:
            shape = self._text.replace("C", str(self.num_features))
            raise _core.ShapeError(f"{type(self).__name__}: expected shape {shape}, got {x.shape}")

    def reset_running_stats(self) -> None:
        """The running statistics back to mean 0 and variance 1."""
        if self.running_mean is not None:
            with no_grad():
                for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                    buffer.fill_(value)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
            f", track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        affine = (self.weight, self.bias)
        if not self.training and self.running_mean is not None:
            return F.batch_norm(x, self.running_mean, self.running_var, *affine, eps=self.eps)
        if x.numel() // max(1, self.num_features) <= 1:
            raise _core.ShapeError(
                f"{type(self).__name__}: expected more than one value per channel in training, got {x.shape}"
            )
        if not self.training or self.running_mean is None:
            return F.batch_norm(x, None, None, *affine, training=True, eps=self.eps)
        with no_grad():
            self.num_batches_tracked.assign_(self.num_batches_tracked + 1)
        # None: the plain mean over all batches so far.
        share = 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        return F.batch_norm(x, self.running_mean, self.running_var, *affine, True, share, self.eps)


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of (N, C) or (N, C, L): by the batch in training, by the running statistics else.

    Examples
    --------
    >>> norm = vkml.nn.BatchNorm1d(4)
    >>> norm(vkml.randn((3, 4))).shape, norm(vkml.randn((3, 4, 5))).shape
    ((3, 4), (3, 4, 5))
    """

    _axes, _text = (0, 1), "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (N, C, H, W): by the batch in training, by the running statistics in evaluation.

    Examples
    --------
    >>> norm = vkml.nn.BatchNorm2d(4)
    >>> norm(vkml.randn((2, 4, 3, 3))).shape
    (2, 4, 3, 3)
    >>> norm.eval()(vkml.zeros(1, 4, 1, 1)).shape
    (1, 4, 1, 1)
    """

    _axes, _text = (2,), "(N, C, H, W)"


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of (N, C, D, H, W): by the batch in training, by the running statistics in evaluation.

    Examples
    --------
    >>> vkml.nn.BatchNorm3d(4)(vkml.randn((2, 4, 2, 3, 3))).shape
    (2, 4, 2, 3, 3)
    """

    _axes, _text = (3,), "(N, C, D, H, W)"


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._build(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        own = self.training or self.running_mean is None
        moved = (self.running_mean, self.running_var)
        share = 0.0 if self.momentum is None else self.momentum  # None leaves them, as PyTorch does
        return F.instance_norm(x, *moved, self.weight, self.bias, own, share, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, L) by itself; no weight and bias unless `affine`.

    Examples
    --------
    >>> vkml.nn.InstanceNorm1d(2)(vkml.tensor([[[1.0, 3.0], [5.0, 9.0]]])).round()
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """

    _axes, _text = (1,), "(N, C, L)"


class InstanceNorm2d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, H, W) by itself; no weight and bias unless `affine`.

    Examples
    --------
    >>> vkml.nn.InstanceNorm2d(3)(vkml.randn((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    _axes, _text = (2,), "(N, C, H, W)"


class InstanceNorm3d(_InstanceNorm):
    """Normalises every channel of every sample of (N, C, D, H, W) by itself; no weight and bias unless `affine`.

    Examples
    --------
    >>> vkml.nn.InstanceNorm3d(3)(vkml.randn((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    _axes, _text = (3,), "(N, C, D, H, W)"

"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import ones, zeros
from .._runtime import finfo
from ..autograd import no_grad
from .module import Module, Parameter

__all__ = ["BatchNorm2d", "GroupNorm", "LayerNorm", "RMSNorm"]


def _sizes(op: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    out = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if not out:
        raise _core.ShapeError(f"{op}: normalized_shape: expected at least one size, got {shape}")
    return out


def _pair(shape: Any, affine: bool, bias: bool, device: Any, dtype: Any) -> tuple[Parameter | None, Parameter | None]:
    dtype = _core.float32 if dtype is None else dtype
    weight = Parameter(ones(shape, device=device, dtype=dtype)) if affine else None
    return weight, Parameter(zeros(shape, device=device, dtype=dtype)) if affine and bias else None


class _RowNorm(Module):
    def __init__(
        self, shape: int | Sequence[int], eps: float | None, affine: bool, bias: bool | None, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _sizes(type(self).__name__, shape), eps, affine
        weight, shift = _pair(self.normalized_shape, affine, bias, device, dtype)
        self.register_parameter("weight", weight)
        if bias is not None:
            self.register_parameter("bias", shift)

    def _check(self, x: Tensor) -> int:
        n = len(self.normalized_shape)
        if x.shape[x.ndim - n :] != self.normalized_shape or x.ndim < n:
            raise _core.ShapeError(
                f"{type(self).__name__}: expected an input that ends in {self.normalized_shape}, got {x.shape}"
            )
        return n

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_RowNorm):
    """(x - mean) / sqrt(var + eps) over the trailing axes of `normalized_shape`, then weight and bias."""

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
        return _core.layer_norm(x, self._check(x), self.eps or 0.0, weight=self.weight, bias=self.bias)


class RMSNorm(_RowNorm):
    """x / sqrt(mean(x^2) + eps) over the trailing axes, then weight. Without eps the dtype's epsilon counts."""

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
        eps = finfo(x.dtype).eps if self.eps is None else self.eps
        return _core.rms_norm(x, self._check(x), eps, weight=self.weight)


class GroupNorm(Module):
    """Normalises groups of channels of (N, C, ...), then scales and shifts each channel."""

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
        rows = x.reshape(x.shape[0], self.num_groups, -1)
        y = _core.layer_norm(rows, 1, self.eps).reshape(x.shape)
        if self.weight is None:
            return y
        per_channel = (self.num_channels,) + (1,) * (x.ndim - 2)
        return y * self.weight.reshape(per_channel) + self.bias.reshape(per_channel)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class BatchNorm2d(Module):
    """Normalises each channel of (N, C, H, W): by the batch in training, by the running statistics in evaluation."""

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

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.num_features:
            raise _core.ShapeError(f"BatchNorm2d: expected shape (N, {self.num_features}, H, W), got {x.shape}")
        if not self.training and self.track_running_stats:
            return _core.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.eps)
        count = x.numel() // max(1, self.num_features)
        if count <= 1:
            raise _core.ShapeError(f"BatchNorm2d: expected more than one value per channel in training, got {x.shape}")
        y, mean, variance = _core.batch_norm_train(x, self.weight, self.bias, self.eps)
        if self.training and self.track_running_stats:
            self._track(mean.detach(), variance.detach(), count)
        return y

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        with no_grad():
            self.num_batches_tracked.assign_(self.num_batches_tracked + 1)
            share = 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
            for running, new in ((self.running_mean, mean), (self.running_var, variance * (count / (count - 1)))):
                running.assign_(running * (1 - share) + new.to(dtype=running.dtype) * share)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"

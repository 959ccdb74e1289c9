"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _core
from ..._core import Tensor
from ..._runtime import finfo
from ...autograd import no_grad

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm"]


def _trailing(op: str, input: Tensor, normalized_shape: int | Sequence[int]) -> int:
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise _core.ShapeError(f"{op}: expected an input that ends in {sizes}, got {input.shape}")
    return len(sizes)


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over the trailing axes of those sizes, then weight and bias.

    Examples
    --------
    >>> vkml.nn.functional.layer_norm(vkml.tensor([[1.0, 3.0]]), 2).round()
    tensor([[-1.,  1.]])
    """
    return _core.layer_norm(input, _trailing("layer_norm", input, normalized_shape), eps, weight=weight, bias=bias)


def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the trailing axes, then weight; without eps the dtype's epsilon counts.

    Examples
    --------
    >>> vkml.nn.functional.rms_norm(vkml.tensor([[3.0, 4.0]]), 2)
    tensor([[0.8485, 1.1314]])
    """
    axes = _trailing("rms_norm", input, normalized_shape)
    return _core.rms_norm(input, axes, finfo(input.dtype).eps if eps is None else eps, weight=weight)


def _per_channel(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    shape = (y.shape[1],) + (1,) * (y.ndim - 2)
    if weight is not None:
        y = y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises groups of channels of (N, C, ...), then scales and shifts each channel.

    Examples
    --------
    >>> vkml.nn.functional.group_norm(vkml.tensor([[1.0, 3.0, 5.0, 9.0]]), 2).round()
    tensor([[-1.,  1., -1.,  1.]])
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise _core.ShapeError(f"group_norm: expected channels in {num_groups} groups, got {input.shape}")
    rows = input.reshape(input.shape[0], num_groups, -1)
    return _per_channel(_core.layer_norm(rows, 1, eps).reshape(input.shape), weight, bias)


def _move(running: Tensor | None, new: Tensor, momentum: float, factor: float = 1.0) -> None:
    """running = (1 - momentum) running + momentum factor new, in place."""
    if running is not None:
        with no_grad():
            running.assign_(running * (1 - momentum) + new.detach().to(dtype=running.dtype) * (momentum * factor))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises channels by the batch (training) or by the running statistics; training moves the latter.

    Examples
    --------
    >>> mean, var = vkml.zeros(1), vkml.ones(1)
    >>> y = vkml.nn.functional.batch_norm(vkml.tensor([[1.0], [3.0]]), mean, var, training=True)
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    if not training:
        if running_mean is None or running_var is None:
            raise _core.ShapeError("batch_norm: expected running statistics outside training, got None")
        return _core.batch_norm(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(1, input.shape[1])
    if count <= 1:
        raise _core.ShapeError(f"batch_norm: expected more than one value per channel in training, got {input.shape}")
    y, mean, variance = _core.batch_norm_train(input, weight, bias, eps)
    _move(running_mean, mean, momentum)
    _move(running_var, variance, momentum, count / (count - 1))
    return y


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises every channel of every sample of (N, C, ...) by itself, or by the running statistics.

    Examples
    --------
    >>> vkml.nn.functional.instance_norm(vkml.tensor([[[1.0, 3.0], [5.0, 9.0]]])).round()
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 3:
        raise _core.ShapeError(f"instance_norm: expected rank >= 3, got {input.shape}")
    rows = input.flatten(2)
    if rows.shape[2] <= 1:
        raise _core.ShapeError(f"instance_norm: expected more than one value per channel, got {input.shape}")
    if running_mean is not None and running_var is not None:
        wide = rows.detach().to(dtype=running_mean.dtype)
        _move(running_mean, wide.mean(-1).mean(0), momentum)
        _move(running_var, _core.var(wide, -1).mean(0), momentum)
    return _per_channel(_core.layer_norm(rows, 1, eps).reshape(input.shape), weight, bias)

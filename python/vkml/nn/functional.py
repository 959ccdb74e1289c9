"""Operators with PyTorch's names, argument order and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._runtime import finfo

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "huber_loss",
    "kl_div",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool2d",
    "mse_loss",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "tanh",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0)."""
    return _core.relu(input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the normal distribution function."""
    return _core.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input sigmoid(input)."""
    return _core.silu(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-input))."""
    return _core.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """tanh(input)."""
    return _core.tanh(input)


def softmax(input: Tensor, dim: int = -1) -> Tensor:
    """exp(input) / sum(exp(input)) along dim."""
    return _core.softmax(input, dim)


def log_softmax(input: Tensor, dim: int = -1) -> Tensor:
    """The logarithm of softmax, without its small numbers lost."""
    return _core.log_softmax(input, dim)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias."""
    return _core.linear(input, weight, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Rows of weight: the index comes first, as in PyTorch."""
    return _core.embedding(weight, input, padding_idx)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements with probability p; the mask comes from the default generator."""
    return _core.dropout(input, p, training=training)


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
    """(x - mean) / sqrt(var + eps) over the trailing axes of those sizes, then weight and bias."""
    return _core.layer_norm(input, _trailing("layer_norm", input, normalized_shape), eps, weight=weight, bias=bias)


def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the trailing axes, then weight; without eps the dtype's epsilon counts."""
    axes = _trailing("rms_norm", input, normalized_shape)
    return _core.rms_norm(input, axes, finfo(input.dtype).eps if eps is None else eps, weight=weight)


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
    """Normalises channels by the batch (training) or by the running statistics; training moves the latter."""
    if not training:
        if running_mean is None or running_var is None:
            raise _core.ShapeError("batch_norm: expected running statistics outside training, got None")
        return _core.batch_norm(input, running_mean, running_var, weight, bias, eps)
    count = input.numel() // max(1, input.shape[1])
    if count <= 1:
        raise _core.ShapeError(f"batch_norm: expected more than one value per channel in training, got {input.shape}")
    y, mean, variance = _core.batch_norm_train(input, weight, bias, eps)
    for running, new in ((running_mean, mean), (running_var, variance * (count / (count - 1)))):
        if running is not None:
            running.assign_((running * (1 - momentum) + new.detach() * momentum).detach().to(dtype=running.dtype))
    return y


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, H, W) with (C_out, C / groups, kh, kw)."""
    return _core.conv2d(input, weight, bias, stride, padding, dilation, groups)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of every window."""
    return _core.max_pool2d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window."""
    stride = kernel_size if stride is None else stride
    return _core.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


# Losses ---------------------------------------------------------------------------------------------------------------


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of (input - target)^2.

    Examples
    --------
    >>> vkml.nn.mse_loss(vkml.tensor([1.0, 2.0]), vkml.tensor([1.0, 4.0]))
    tensor(2.)
    """
    return _core.mse_loss(input, target, reduction=str(reduction))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | str | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Logits (N, C, ...) against classes, or against probabilities of the same shape.

    Examples
    --------
    >>> vkml.nn.cross_entropy(vkml.tensor([[2.0, 0.0], [0.0, 1.0]]), vkml.tensor([0, 1]))
    tensor(0.2201)
    """
    if isinstance(weight, str):  # older calls: the third argument is a reduction
        return cross_entropy(input, target, None, ignore_index, weight, label_smoothing)
    return _core.cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=str(reduction),
        label_smoothing=label_smoothing,
    )


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of logits, in its stable form.

    Examples
    --------
    >>> vkml.nn.binary_cross_entropy_with_logits(vkml.tensor([0.0, 2.0]), vkml.tensor([0.0, 1.0]))
    tensor(0.4100)
    """
    return _core.binary_cross_entropy_with_logits(
        input, target, weight=weight, reduction=str(reduction), pos_weight=pos_weight
    )


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence; input holds log-probabilities.

    Examples
    --------
    >>> vkml.nn.kl_div(vkml.tensor([0.5, 0.5]).log(), vkml.tensor([0.25, 0.75]), reduction="sum")
    tensor(0.1308)
    """
    return _core.kl_div(input, target, reduction=str(reduction), log_target=log_target)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Squared near 0, linear beyond delta.

    Examples
    --------
    >>> vkml.nn.huber_loss(vkml.tensor([0.5, 3.0]), vkml.tensor([0.0, 0.0]))
    tensor(1.3125)
    """
    return _core.huber_loss(input, target, reduction=str(reduction), delta=delta)


# Attention ------------------------------------------------------------------------------------------------------------


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value on (..., L, E), (..., S, E) and (..., S, Ev), in tiles.

    A bool mask is True where attention is allowed, as in PyTorch; a float mask adds. A row with nothing allowed
    gives 0. With enable_gqa, query may have a multiple of the heads (axis -3) of key and value.

    Examples
    --------
    >>> q, k, v = (vkml.randn((2, 4, 5, 8)) for _ in range(3))  # batch, heads, length, width
    >>> vkml.nn.scaled_dot_product_attention(q, k, v, is_causal=True).shape
    (2, 4, 5, 8)
    """
    return _core.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)

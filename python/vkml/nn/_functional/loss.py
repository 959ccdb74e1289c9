"""Losses. reduction is "mean", "sum" or "none" (kl_div also takes "batchmean"), or a vkml.Reduction."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


def mse_loss(input: Tensor, target: Tensor, reduction: Any = "mean") -> Tensor:
    """The mean of (input - target)^2.

    Examples
    --------
    >>> vkml.nn.mse_loss(vkml.tensor([1.0, 2.0]), vkml.tensor([1.0, 4.0]))
    tensor(2.)
    """
    return _core.mse_loss(input, target, reduction=str(reduction))


def l1_loss(input: Tensor, target: Tensor, reduction: Any = "mean") -> Tensor:
    """The mean of |input - target|.

    Examples
    --------
    >>> vkml.nn.l1_loss(vkml.tensor([1.0, 2.0]), vkml.tensor([1.0, 4.0]))
    tensor(1.)
    """
    return _core.l1_loss(input, target, reduction=str(reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: Any = "mean", beta: float = 1.0) -> Tensor:
    """huber_loss / beta; l1_loss for beta 0.

    Examples
    --------
    >>> vkml.nn.smooth_l1_loss(vkml.tensor([0.5, 3.0]), vkml.tensor([0.0, 0.0]), beta=2.0)
    tensor(1.0312)
    """
    return _core.smooth_l1_loss(input, target, reduction=str(reduction), beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: Any = "mean", delta: float = 1.0) -> Tensor:
    """Squared near 0, linear beyond delta.

    Examples
    --------
    >>> vkml.nn.huber_loss(vkml.tensor([0.5, 3.0]), vkml.tensor([0.0, 0.0]))
    tensor(1.3125)
    """
    return _core.huber_loss(input, target, reduction=str(reduction), delta=delta)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | str | None = None,
    ignore_index: int = -100,
    reduction: Any = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Logits (N, C, ...) against classes, or against probabilities of the same shape.

    Examples
    --------
    >>> vkml.nn.cross_entropy(vkml.tensor([[2.0, 0.0], [0.0, 1.0]]), vkml.tensor([0, 1]))
    tensor(0.2201)
    """
    if isinstance(weight, str):  # older calls: the third argument is a reduction
        weight, reduction = None, weight
    return _core.cross_entropy(input, target, weight, ignore_index, str(reduction), label_smoothing)


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: Any = "mean"
) -> Tensor:
    """Minus the log-probability (N, C, ...) of each target class.

    Examples
    --------
    >>> vkml.nn.nll_loss(vkml.tensor([[-0.5, -1.0], [-2.0, -0.1]]), vkml.tensor([0, 1]))
    tensor(0.3000)
    """
    return _core.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=str(reduction))


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: Any = "mean"
) -> Tensor:
    """Cross entropy of probabilities; a logarithm counts at least -100.

    Examples
    --------
    >>> vkml.nn.binary_cross_entropy(vkml.tensor([0.5, 0.9]), vkml.tensor([0.0, 1.0]))
    tensor(0.3993)
    """
    return _core.binary_cross_entropy(input, target, weight=weight, reduction=str(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Any = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross entropy of logits, in its stable form.

    Examples
    --------
    >>> vkml.nn.binary_cross_entropy_with_logits(vkml.tensor([0.0, 2.0]), vkml.tensor([0.0, 1.0]))
    tensor(0.4100)
    """
    return _core.binary_cross_entropy_with_logits(input, target, weight, str(reduction), pos_weight)


def kl_div(input: Tensor, target: Tensor, reduction: Any = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence; input holds log-probabilities.

    Examples
    --------
    >>> vkml.nn.kl_div(vkml.tensor([0.5, 0.5]).log(), vkml.tensor([0.25, 0.75]), reduction="sum")
    tensor(0.1308)
    """
    return _core.kl_div(input, target, reduction=str(reduction), log_target=log_target)

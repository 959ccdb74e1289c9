"""Losses. reduction is "mean", "sum" or "none" (kl_div also takes "batchmean"), or a vkml.Reduction."""

from __future__ import annotations

import math
from typing import Any

from ... import _core
from ..._core import Tensor
from .shape import cosine_similarity

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "pairwise_distance",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
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


# Composed of other operators ------------------------------------------------------------------------------------------


def _reduced(op: str, values: Tensor, reduction: Any) -> Tensor:
    word = str(reduction)
    if word not in ("mean", "sum", "none"):
        raise _core.ShapeError(f"{op}: reduction: expected mean, sum or none, got {word!r}")
    return values.mean() if word == "mean" else values.sum() if word == "sum" else values


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Any = "mean",
) -> Tensor:
    """exp(input) - target input: counts against the logarithm of their expectation, or with log_input=False itself.

    `full` adds Stirling's approximation of log(target!).

    Examples
    --------
    >>> vkml.nn.poisson_nll_loss(vkml.tensor([0.0, 1.0]), vkml.tensor([1.0, 2.0]))
    tensor(0.8591)
    """
    loss = _core.exp(input) - target * input if log_input else input - target * _core.log(input + eps)
    if full:
        stirling = target * _core.log(target) - target + 0.5 * _core.log(target * (2 * math.pi))
        loss = loss + _core.where(target > 1, stirling, 0.0)
    return _reduced("poisson_nll_loss", loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: Any = "mean"
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2; var counts at least eps, without a gradient from there.

    Examples
    --------
    >>> vkml.nn.gaussian_nll_loss(vkml.tensor([1.0]), vkml.tensor([3.0]), vkml.tensor([2.0]))
    tensor(1.3466)
    """
    safe = var + (_core.clamp_min(var, eps) - var).detach()  # the bound is no part of the gradient
    loss = 0.5 * (_core.log(safe) + _core.square(input - target) / safe)
    return _reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: Any = "mean"
) -> Tensor:
    """max(0, margin - target (input1 - input2)); target is 1 where input1 should be the larger, -1 elsewhere.

    Examples
    --------
    >>> vkml.nn.margin_ranking_loss(vkml.tensor([1.0]), vkml.tensor([3.0]), vkml.tensor([1.0]))
    tensor(2.)
    """
    return _reduced("margin_ranking_loss", _core.clamp_min(-target * (input1 - input2) + margin, 0.0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: Any = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1.

    Examples
    --------
    >>> vkml.nn.hinge_embedding_loss(vkml.tensor([0.5, 0.25]), vkml.tensor([1.0, -1.0]))
    tensor(0.6250)
    """
    far = _core.where(target == 1, 0.0, _core.clamp_min(margin - input, 0.0))
    return _reduced("hinge_embedding_loss", _core.where(target == -1, 0.0, input) + far, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: Any = "mean") -> Tensor:
    """log(1 + exp(-target input)), target 1 or -1.

    Examples
    --------
    >>> vkml.nn.soft_margin_loss(vkml.tensor([0.0, 2.0]), vkml.tensor([1.0, 1.0]))
    tensor(0.4100)
    """
    return _reduced("soft_margin_loss", _core.softplus(-target * input), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: Any = "mean"
) -> Tensor:
    """1 - cos of rows that should agree (target 1), max(0, cos - margin) of those that should not (-1).

    Examples
    --------
    >>> a, b = vkml.tensor([[3.0, 4.0]]), vkml.tensor([[1.0, 0.0]])
    >>> vkml.nn.cosine_embedding_loss(a, b, vkml.tensor([1.0]))
    tensor(0.4000)
    """
    cosine = cosine_similarity(input1, input2, -1)
    loss = _core.where(target > 0, 1.0 - cosine, _core.clamp_min(cosine - margin, 0.0))
    return _reduced("cosine_embedding_loss", loss, reduction)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis.

    Examples
    --------
    >>> vkml.nn.functional.pairwise_distance(vkml.tensor([[3.0, 4.0]]), vkml.tensor([[0.0, 0.0]]), eps=0.0)
    tensor([5.])
    """
    return _core.norm(x1 - x2 + eps, p, -1, keepdim=keepdim)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Any = "mean",
) -> Tensor:
    """max(0, margin + distance to the positive - distance to the negative), along the last axis.

    `swap` takes the positive's distance to the negative where that is smaller.

    Examples
    --------
    >>> a, b, c = (vkml.tensor([[x]]) for x in (0.0, 1.0, 1.5))
    >>> vkml.nn.triplet_margin_loss(a, b, c, eps=0.0)
    tensor(0.5000)
    """
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = _core.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced("triplet_margin_loss", _core.clamp_min(near - far + margin, 0.0), reduction)

"""Losses as modules; their options are those of the functions of the same names."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]


class _Loss(Module):
    _words: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = str(reduction)
        if self.reduction not in self._words:
            raise _core.ShapeError(
                f"{type(self).__name__}: reduction: expected one of {', '.join(self._words)}, got {reduction!r}"
            )

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """The mean of (input - target)^2.

    Examples
    --------
    >>> vkml.nn.MSELoss()(vkml.tensor([1.0, 2.0]), vkml.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean of |input - target|.

    Examples
    --------
    >>> vkml.nn.L1Loss()(vkml.tensor([1.0, 2.0]), vkml.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, self.reduction)


class SmoothL1Loss(_Loss):
    """HuberLoss / beta; L1Loss for beta 0.

    Examples
    --------
    >>> vkml.nn.SmoothL1Loss(beta=2.0)(vkml.tensor([0.5, 3.0]), vkml.tensor([0.0, 0.0]))
    tensor(1.0312)
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        if not beta >= 0:
            raise _core.ShapeError(f"SmoothL1Loss: beta: expected a number of at least 0, got {beta}")
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class NLLLoss(_Loss):
    """Minus the log-probability (N, C, ...) of each target class.

    Examples
    --------
    >>> vkml.nn.NLLLoss()(vkml.tensor([[-0.5, -1.0], [-2.0, -0.1]]), vkml.tensor([0, 1]))
    tensor(0.3000)
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class BCELoss(_Loss):
    """Cross entropy of probabilities; a logarithm counts at least -100.

    Examples
    --------
    >>> vkml.nn.BCELoss()(vkml.tensor([0.5, 0.9]), vkml.tensor([0.0, 1.0]))
    tensor(0.3993)
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class CrossEntropyLoss(_Loss):
    """Logits (N, C, ...) against classes, or against probabilities of the same shape.

    Examples
    --------
    >>> vkml.nn.CrossEntropyLoss()(vkml.tensor([[2.0, 0.0], [0.0, 1.0]]), vkml.tensor([0, 1]))
    tensor(0.2201)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits, in its stable form.

    Examples
    --------
    >>> vkml.nn.BCEWithLogitsLoss()(vkml.tensor([0.0, 2.0]), vkml.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of log-probabilities from a target distribution.

    Examples
    --------
    >>> vkml.nn.KLDivLoss("sum")(vkml.tensor([0.5, 0.5]).log(), vkml.tensor([0.25, 0.75]))
    tensor(0.1308)
    """

    _words = ("mean", "sum", "none", "batchmean")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, self.reduction, self.log_target)


class HuberLoss(_Loss):
    """Squared near 0, linear beyond delta.

    Examples
    --------
    >>> vkml.nn.HuberLoss()(vkml.tensor([0.5, 3.0]), vkml.tensor([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        if not delta > 0:
            raise _core.ShapeError(f"HuberLoss: delta: expected a number above 0, got {delta}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class PoissonNLLLoss(_Loss):
    """exp(input) - target input: counts against the logarithm of their expectation, or with log_input=False itself.

    Examples
    --------
    >>> vkml.nn.PoissonNLLLoss()(vkml.tensor([0.0, 1.0]), vkml.tensor([1.0, 2.0]))
    tensor(0.8591)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(input, target, self.log_input, self.full, self.eps, self.reduction)


class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target)^2 / var) / 2; var counts at least eps.

    Examples
    --------
    >>> vkml.nn.GaussianNLLLoss()(vkml.tensor([1.0]), vkml.tensor([3.0]), vkml.tensor([2.0]))
    tensor(1.3466)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target input)), target 1 or -1.

    Examples
    --------
    >>> vkml.nn.SoftMarginLoss()(vkml.tensor([0.0, 2.0]), vkml.tensor([1.0, 1.0]))
    tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """input where target is 1, max(0, margin - input) where it is -1.

    Examples
    --------
    >>> vkml.nn.HingeEmbeddingLoss()(vkml.tensor([0.5, 0.25]), vkml.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class _PairLoss(_Loss):
    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def extra_repr(self) -> str:
        return f"margin={self.margin}, reduction={self.reduction!r}"


class MarginRankingLoss(_PairLoss):
    """max(0, margin - target (input1 - input2)); target is 1 where input1 should be the larger, -1 elsewhere.

    Examples
    --------
    >>> vkml.nn.MarginRankingLoss()(vkml.tensor([1.0]), vkml.tensor([3.0]), vkml.tensor([1.0]))
    tensor(2.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(_PairLoss):
    """1 - cos of rows that should agree (target 1), max(0, cos - margin) of those that should not (-1).

    Examples
    --------
    >>> a, b = vkml.tensor([[3.0, 4.0]]), vkml.tensor([[1.0, 0.0]])
    >>> vkml.nn.CosineEmbeddingLoss()(a, b, vkml.tensor([1.0]))
    tensor(0.4000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, margin + distance to the positive - distance to the negative), along the last axis.

    Examples
    --------
    >>> a, b, c = (vkml.tensor([[x]]) for x in (0.0, 1.0, 1.5))
    >>> vkml.nn.TripletMarginLoss(eps=0.0)(a, b, c)
    tensor(0.5000)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return F.triplet_margin_loss(anchor, positive, negative, *options)

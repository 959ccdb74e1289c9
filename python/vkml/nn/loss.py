"""Losses as modules; their options are those of the functions of the same names."""

from __future__ import annotations

from .. import _core
from .._core import Tensor
from . import functional as F
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
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

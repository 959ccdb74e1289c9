"""A schedule that follows what is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._checks import check_number, check_setting, checked_schedule
from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau:
    """Times factor when a measure has not improved for more than `patience` calls: `step(measure)` after each epoch.

    Parameters
    ----------
    mode : "min" or "max": which way the measure improves
    threshold, threshold_mode : by how much it has to, as a share ("rel") or as it is ("abs")
    cooldown : calls after a reduction that do not count
    min_lr : float or one per group
    eps : smaller changes of the rate are left out

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (0.5, 0.5, 0.5):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        check_number(self, "factor", factor, 0, math.nextafter(1, 0), "a number in [0, 1)")
        for name, value in (("patience", patience), ("threshold", threshold), ("cooldown", cooldown), ("eps", eps)):
            check_number(self, name, value)
        check_setting(self, "mode", mode, mode in ("min", "max"), "min or max")
        check_setting(self, "threshold_mode", threshold_mode, threshold_mode in ("rel", "abs"), "rel or abs")
        self.optimizer, count = optimizer, len(optimizer.param_groups)
        self.min_lrs = [float(min_lr)] * count if isinstance(min_lr, (int, float)) else list(min_lr)
        check_setting(self, "min_lr", self.min_lrs, len(self.min_lrs) == count, f"{count} rates")
        for least in self.min_lrs:
            check_number(self, "min_lr", least)
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _is_better(self, measure: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            return sign * measure > sign * self.best + self.threshold
        return sign * measure > sign * self.best * (1 + sign * self.threshold)

    def step(self, metrics: Any) -> None:
        """Takes the measure of an epoch: a number, or a tensor of one element."""
        measure = float(metrics)
        self.last_epoch += 1
        if self._is_better(measure):
            self.best, self.num_bad_epochs = measure, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                rate = max(group["lr"] * self.factor, least)
                if group["lr"] - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    get_last_lr = LRScheduler.get_last_lr

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, whose own state holds the rates."""
        return {k: v for k, v in vars(self).items() if k != "optimizer"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over a saved state; one that is refused changes nothing."""
        checked_schedule(self, state)
        vars(self).update(state)

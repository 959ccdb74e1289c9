"""One schedule after the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from .._checks import check_setting, checked_schedule
from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["SequentialLR"]


class SequentialLR(LRScheduler):
    """One schedule after the other: the next one starts, at its time 0, at each milestone.

    Examples
    --------
    >>> lr_scheduler = vkml.optim.lr_scheduler
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [lr_scheduler.LinearWarmup(optimizer, 2), lr_scheduler.CosineAnnealingLR(optimizer, 4)]
    >>> schedule = lr_scheduler.SequentialLR(optimizer, parts, milestones=[2])
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> [round(rate, 3) for rate in rates]
    [0.5, 1.0, 1.0, 0.854, 0.5]
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        fits = len(self._schedulers) == len(self.milestones) + 1 and self.milestones == sorted(self.milestones)
        check_setting(self, "milestones", self.milestones, fits, "rising times, one fewer than schedulers")
        for s in self._schedulers:
            good = isinstance(s, LRScheduler) and s.optimizer is optimizer
            check_setting(
                self, "schedulers", type(s).__name__, good, "schedules of the same optimizer that follow the time"
            )
        super().__init__(optimizer)

    def _apply(self) -> None:
        part = bisect_right(self.milestones, self.last_epoch)
        running = self._schedulers[part]
        running.last_epoch = self.last_epoch - (self.milestones[part - 1] if part else 0)
        running._apply()

    def state_dict(self) -> dict[str, Any]:
        """The time, and the states of all parts."""
        own = {k: v for k, v in super().state_dict().items() if k != "_schedulers"}
        return {**own, "schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a saved time; a state that is refused changes nothing."""
        checked_schedule(self, state)
        for part, own in zip(self._schedulers, state["schedulers"], strict=True):
            part.load_state_dict(own)
        vars(self).update({k: v for k, v in state.items() if k != "schedulers"})
        self._apply()

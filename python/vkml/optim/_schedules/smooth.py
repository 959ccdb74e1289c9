"""Schedules along a line or a cosine."""

from __future__ import annotations

import math

from .._checks import check_number
from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["CosineAnnealingLR", "LinearLR", "LinearWarmup"]


class LinearLR(LRScheduler):
    """From start_factor to end_factor of the rate along total_iters steps: a warm-up, as it comes.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5
    ) -> None:
        check_number(self, "start_factor", start_factor, math.nextafter(0, 1), 1, "a number in (0, 1]")
        check_number(self, "end_factor", end_factor, 0, 1, "a number in [0, 1]")
        check_number(self, "total_iters", total_iters, 1)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        done = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingLR(LRScheduler):
    """From the first rate to eta_min along half a cosine of T_max steps.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for _ in range(4):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        check_number(self, "T_max", T_max, 1)
        check_number(self, "eta_min", eta_min)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class LinearWarmup(LRScheduler):
    """min(1, (t + 1) / warmup_steps) of the rate.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> vkml.optim.lr_scheduler.LinearWarmup(optimizer, warmup_steps=4).get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, warmup_steps: int) -> None:
        check_number(self, "warmup_steps", warmup_steps, 1)
        self.warmup_steps = warmup_steps
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * min(1.0, (t + 1) / self.warmup_steps)

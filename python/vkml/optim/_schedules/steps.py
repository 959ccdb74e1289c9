"""Schedules in steps, and by any function of the time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from ... import _core
from .._checks import check_number
from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["ConstantLR", "ExponentialLR", "LambdaLR", "MultiStepLR", "StepLR"]


class StepLR(LRScheduler):
    """Times gamma after every step_size steps.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        check_number(self, "step_size", step_size, 1)
        check_number(self, "gamma", gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """Times gamma at each of the given times.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        for milestone in milestones:
            check_number(self, "milestones", milestone)
        check_number(self, "gamma", gamma)
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, t)


class ExponentialLR(LRScheduler):
    """Times gamma at every step.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        check_number(self, "gamma", gamma)
        self.gamma = gamma
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * self.gamma**t


class ConstantLR(LRScheduler):
    """Times factor until total_iters steps are made.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> vkml.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5) -> None:
        check_number(self, "factor", factor, 0, 1, "a number in [0, 1]")
        check_number(self, "total_iters", total_iters)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * (self.factor if t < self.total_iters else 1.0)


class LambdaLR(LRScheduler):
    """The rate times a function of the time; one function, or one per group.

    Examples
    --------
    >>> optimizer = vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = vkml.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 0.5**t)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]]) -> None:
        count = len(optimizer.param_groups)
        self._functions = tuple([lr_lambda] * count if callable(lr_lambda) else lr_lambda)
        if len(self._functions) != count:
            raise _core.ShapeError(f"LambdaLR: expected {count} functions, got {len(self._functions)}")
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * float(self._functions[group](t))

    def state_dict(self) -> dict[str, Any]:
        """The time and the first rates; functions are the program's."""
        return {k: v for k, v in super().state_dict().items() if k != "_functions"}

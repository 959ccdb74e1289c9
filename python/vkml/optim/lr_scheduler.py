"""Schedules of the learning rate: call step() once per epoch, or per step, after the optimizer's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _core
from .optimizers import Optimizer

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearWarmup", "StepLR"]


class LRScheduler:
    """Base: the rate of a group at time t is its first rate times factor(t), or what `_rate` says."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = 0
        self._apply()

    def _rate(self, base: float, t: int, group: int) -> float:
        raise NotImplementedError

    def _apply(self) -> None:
        for i, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self._rate(base, self.last_epoch, i)

    def step(self) -> None:
        """Goes to the next time."""
        self.last_epoch += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """The rates that hold now, one per group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The time and the first rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a saved time."""
        self.last_epoch, self.base_lrs = state["last_epoch"], list(state["base_lrs"])
        self._apply()


class StepLR(LRScheduler):
    """Times gamma after every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise _core.ShapeError(f"StepLR: step_size: expected a number >= 1, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * self.gamma ** (t // self.step_size)


class CosineAnnealingLR(LRScheduler):
    """From the first rate to eta_min along half a cosine of T_max steps."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        if T_max < 1:
            raise _core.ShapeError(f"CosineAnnealingLR: T_max: expected a number >= 1, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class LinearWarmup(LRScheduler):
    """min(1, (t + 1) / warmup_steps) of the rate."""

    def __init__(self, optimizer: Optimizer, warmup_steps: int) -> None:
        if warmup_steps < 1:
            raise _core.ShapeError(f"LinearWarmup: warmup_steps: expected a number >= 1, got {warmup_steps}")
        self.warmup_steps = warmup_steps
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * min(1.0, (t + 1) / self.warmup_steps)


class LambdaLR(LRScheduler):
    """The rate times a function of the time; one function, or one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list[Callable[[int], float]]) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Callable[[int], float]] = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise _core.ShapeError(f"LambdaLR: expected {count} functions, got {len(self.lr_lambdas)}")
        super().__init__(optimizer)

    def _rate(self, base: float, t: int, group: int) -> float:
        return base * float(self.lr_lambdas[group](t))

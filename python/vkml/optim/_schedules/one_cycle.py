"""Up and down once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import _core
from .._checks import check_number, check_setting
from ..optimizer import Optimizer
from .base import LRScheduler

__all__ = ["OneCycleLR"]


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def _line(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


class OneCycleLR(LRScheduler):
    """Up to max_lr and down to almost nothing (Smith and Topin, 2018), while the momentum goes the other way.

    Parameters
    ----------
    max_lr : float or one per group
    total_steps : int, or epochs and steps_per_epoch
    pct_start : the share of the steps that goes up
    anneal_strategy : "cos" or "linear"
    cycle_momentum : moves momentum, or the first beta, from max_momentum to base_momentum and back
    div_factor : max_lr over the first rate
    final_div_factor : the first rate over the last
    three_phase : down to the first rate as it went up, then further

    Examples
    --------
    >>> optimizer = vkml.optim.AdamW([vkml.ones(1, requires_grad=True)])
    >>> schedule = vkml.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> schedule.get_last_lr()
    [0.04]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        total = total_steps or (epochs or 0) * (steps_per_epoch or 0)
        check_setting(self, "total_steps", total, total >= 1, "a number >= 1, or epochs and steps_per_epoch")
        check_number(self, "pct_start", pct_start, 0, 1, "a number in [0, 1]")
        check_number(self, "div_factor", div_factor, math.nextafter(0, 1), wanted="a finite number above 0")
        check_number(self, "final_div_factor", final_div_factor, math.nextafter(0, 1), wanted="a finite number above 0")
        check_number(self, "base_momentum", base_momentum, 0, 1, "a number in [0, 1]")
        check_number(self, "max_momentum", max_momentum, 0, 1, "a number in [0, 1]")
        check_setting(self, "anneal_strategy", anneal_strategy, anneal_strategy in ("cos", "linear"), "cos or linear")
        groups = optimizer.param_groups
        self.max_lrs = [float(max_lr)] * len(groups) if isinstance(max_lr, (int, float)) else list(max_lr)
        check_setting(self, "max_lr", self.max_lrs, len(self.max_lrs) == len(groups), f"{len(groups)} rates")
        for most in self.max_lrs:
            check_number(self, "max_lr", most)
        self.cycle_momentum, self.max_momentum = cycle_momentum, max_momentum
        movable = not cycle_momentum or all("momentum" in g or "betas" in g for g in groups)
        check_setting(self, "cycle_momentum", cycle_momentum, movable, "False for an optimizer without momentum")
        self.total_steps, self.anneal_strategy, self.three_phase = total, anneal_strategy, three_phase
        self.pct_start, self.final_div_factor, self.base_momentum = pct_start, final_div_factor, base_momentum
        for group, most in zip(groups, self.max_lrs, strict=True):
            group["initial_lr"] = most / div_factor
        super().__init__(optimizer)

    def _stage(self, t: int) -> tuple[int, float]:
        """Which way the rate goes at time t (0 up, 1 down, 2 further down), and how far it has gone."""
        up = float(self.pct_start * self.total_steps) - 1
        ends = [up, 2 * up, self.total_steps - 1] if self.three_phase else [up, self.total_steps - 1]
        stage = next((i for i, end in enumerate(ends) if t <= end), len(ends) - 1)
        start = ends[stage - 1] if stage else 0.0
        length = ends[stage] - start
        return stage if self.three_phase else 2 * stage, (t - start) / length if length else 1.0

    def _rate(self, base: float, t: int, group: int) -> float:
        if t > self.total_steps:
            raise _core.ShapeError(f"OneCycleLR: expected at most {self.total_steps} steps, got {t}")
        most, least = self.max_lrs[group], base / self.final_div_factor
        stage, done = self._stage(t)
        start, end = [(base, most), (most, base), (base if self.three_phase else most, least)][stage]
        anneal = _cosine if self.anneal_strategy == "cos" else _line
        if self.cycle_momentum:
            low, high = self.base_momentum, self.max_momentum
            ends = [(high, low), (low, high), (high if self.three_phase else low, high)][stage]
            self._set_momentum(self.optimizer.param_groups[group], anneal(*ends, done))
        return anneal(start, end, done)

    @staticmethod
    def _set_momentum(group: dict[str, Any], value: float) -> None:
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

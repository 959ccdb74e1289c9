"""Schedules of the learning rate: call step() once per epoch, or per step, after the optimizer's."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from ._checks import check_number, check_setting, checked_schedule
from .optimizers import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "LinearWarmup",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class LRScheduler:
    """Base: what `_rate(base, t, group)` says of a group at time t, with `base` its first rate.

    Examples
    --------
    >>> class Halving(vkml.optim.lr_scheduler.LRScheduler):
    ...     def _rate(self, base, t, group):
    ...         return base / 2**t
    >>> schedule = Halving(vkml.optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs, self.last_epoch = [group["initial_lr"] for group in optimizer.param_groups], 0
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
        """Everything but the optimizer and functions: numbers, words and lists of them."""
        plain = (bool, int, float, str, list, tuple, type(None))
        return {k: list(v) if isinstance(v, list) else v for k, v in vars(self).items() if isinstance(v, plain)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a saved time; a state that is refused changes nothing."""
        checked_schedule(self, state)
        kept = dict(vars(self))
        vars(self).update(state)
        try:
            self._apply()
        except Exception:
            vars(self).clear()
            vars(self).update(kept)
            self._apply()
            raise


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

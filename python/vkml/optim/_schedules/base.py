"""What every schedule does: rates that follow a time."""

from __future__ import annotations

from typing import Any

from .._checks import checked_schedule
from ..optimizer import Optimizer

__all__ = ["LRScheduler"]


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

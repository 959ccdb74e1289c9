"""Exponential moving averages of a model's weights."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import full
from ..autograd import no_grad
from ..nn.utils import by_kind
from ._checks import array, mapping, number, refuse

__all__ = ["EMA"]


class EMA:
    """A running average of a model's parameters: average += (1 - decay) (weight - average) at every update().

    One dispatch per update for all parameters of a dtype. Buffers, such as the statistics of a batch norm, are copied.

    Parameters
    ----------
    model : Module
    decay : float
        How much of the average stays, in [0, 1].

    Examples
    --------
    >>> model = vkml.nn.Linear(1, 1, bias=False)
    >>> _ = model.weight.assign_(vkml.zeros(1, 1))
    >>> ema = vkml.optim.EMA(model, decay=0.75)
    >>> _ = model.weight.assign_(vkml.ones(1, 1))
    >>> ema.update()
    >>> with ema.applied():
    ...     model(vkml.ones(1, 1)).item()
    0.25
    >>> model(vkml.ones(1, 1)).item()
    1.0
    """

    def __init__(self, model: Any, decay: float = 0.999) -> None:
        number("EMA: decay", decay, below=math.nextafter(1, 2), wanted="a number in [0, 1]")
        self.model, self.decay, self.updates = model, decay, 0
        self.averages = {name: t.detach().clone() for name, t in self._current().items()}
        self._weights: dict[tuple, Tensor] = {}

    def _current(self) -> dict[str, Tensor]:
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    def _pairs(self) -> list[tuple[Tensor, Tensor]]:
        """(average, what it is the average of), the averages moved to where the model is now."""
        current = self._current()
        if current.keys() != self.averages.keys():
            raise _core.ShapeError("EMA: expected the model to keep its parameters and buffers, got other ones")
        for name, t in current.items():
            if self.averages[name].device != t.device or self.averages[name].dtype != t.dtype:
                self.averages[name] = self.averages[name].to(device=t.device, dtype=t.dtype)
        return [(self.averages[name], t) for name, t in current.items()]

    def _weight(self, like: Tensor) -> Tensor:
        wide = _core.float64 if like.dtype == _core.float64 else _core.float32
        key = (str(wide), str(like.device), self.decay)
        if key not in self._weights:
            self._weights = {k: v for k, v in self._weights.items() if k[2] == self.decay}
            self._weights[key] = full((), 1 - self.decay, dtype=wide, device=like.device)
        return self._weights[key]

    def update(self) -> None:
        """Takes the model's weights into the average: call it after the optimizer's step."""
        learned = {name for name, _ in self.model.named_parameters()}
        with no_grad():
            pairs = dict(zip(self.averages, self._pairs(), strict=True))
            averaged = [pair for name, pair in pairs.items() if name in learned and pair[0].is_floating_point()]
            sources = {id(average): t.detach().contiguous() for average, t in averaged}
            for kind in by_kind(average for average, _ in averaged):
                _core._multi_lerp_(kind, [sources[id(average)] for average in kind], self._weight(kind[0]))
            for average, t in pairs.values():
                if id(average) not in sources:
                    average.assign_(t.detach())
        self.updates += 1

    def copy_to(self) -> None:
        """Overwrites the model's weights with the average, for good."""
        pairs = self._pairs()
        _core.assign([t.detach() for _, t in pairs], [average for average, _ in pairs])

    @contextlib.contextmanager
    def applied(self) -> Iterator[Any]:
        """`with ema.applied():` the model computes with the average inside, and gets its weights back."""
        kept = [(t, t.detach().clone()) for _, t in self._pairs()]
        self.copy_to()
        try:
            yield self.model
        finally:
            _core.assign([t.detach() for t, _ in kept], [own for _, own in kept])

    def state_dict(self) -> dict[str, Any]:
        """The averages, the decay and the number of updates."""
        return {"decay": self.decay, "updates": self.updates, "averages": dict(self.averages)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over a saved state; one that is refused changes nothing."""
        where = "EMA.load_state_dict"
        mapping(where, state, ("averages", "decay", "updates"))
        given = state["averages"]
        mapping(f"{where}: averages", given, self.averages)
        if given.keys() != self.averages.keys():
            refuse(f"{where}: averages", f"the names {list(self.averages)}", f"{list(given)}")
        number(f"{where}: decay", state["decay"], below=math.nextafter(1, 2), wanted="a number in [0, 1]")
        number(f"{where}: updates", state["updates"])
        values = {}
        for name, average in self.averages.items():
            values[name] = array(f"{where}: {name}", given[name], average.shape, average.is_floating_point())
        for name, average in self.averages.items():
            average.copy_(values[name])
        self.decay, self.updates = state["decay"], state["updates"]

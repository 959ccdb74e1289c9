"""Loss scaling: keeps the small gradients of float16 from becoming 0."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import full, zeros
from ..autograd import no_grad
from ..nn.utils import by_kind
from ._checks import mapping, number
from .optimizer import Optimizer

__all__ = ["GradScaler"]


_ABOVE_0, _ABOVE_1 = math.nextafter(0, 1), math.nextafter(1, 2)


def _check_scale(where: str, value: Any) -> float:
    return number(where, value, _ABOVE_0, wanted="a finite number above 0")


def _check_factors(where: str, growth: Any, backoff: Any, interval: Any) -> None:
    number(f"{where}: growth_factor", growth, _ABOVE_1, wanted="a finite number above 1")
    number(f"{where}: backoff_factor", backoff, _ABOVE_0, 1, wanted="a number in (0, 1)")
    number(f"{where}: growth_interval", interval, 1)


class GradScaler:
    """Scales losses up and gradients down again; leaves out a step with infinite or NaN gradients.

    As torch.amp.GradScaler: after such a step the scale is multiplied by `backoff_factor`, after `growth_interval`
    steps without one by `growth_factor`. Whether a step is left out is decided on the device by one flag: nothing is
    read on the host, so a step can also be captured. Unlike PyTorch it takes float16 parameters too.

    Examples
    --------
    >>> w = vkml.tensor([1.0, 2.0], dtype=vkml.float16, requires_grad=True)
    >>> optimizer, scaler = vkml.optim.SGD([w], lr=0.5), vkml.optim.GradScaler(init_scale=1024.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.detach()
    tensor([0., 0.], dtype=vkml.float16)
    >>> scaler.get_scale()
    1024.0
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _check_scale("GradScaler: init_scale", init_scale)
        _check_factors("GradScaler", growth_factor, backoff_factor, growth_interval)
        self._growth, self._backoff, self._interval = growth_factor, backoff_factor, growth_interval
        self._enabled = enabled
        self._start, self._start_growth = float(init_scale), 0
        self._scale: Tensor | None = None  # float32, on the device of the first loss
        self._since: Tensor | None = None  # int32: steps since the scale changed
        self._found: dict[int, dict[str, Tensor]] = {}  # by optimizer and device: 1 after a gradient that is not finite
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """False makes every method pass through."""
        return self._enabled

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = full((), self._start, dtype=_core.float32, device=device)
            self._since = full((), self._start_growth, dtype=_core.int32, device=device)
        return self._scale.to(device=device)

    def scale(self, outputs: Any) -> Any:
        """A loss, or a list or tuple of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device).to(dtype=outputs.dtype)
        return type(outputs)(self.scale(t) for t in outputs)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale, at most once before its step: for clipping in between."""
        if not self._enabled:
            return
        if id(optimizer) in self._found:
            raise _core.Error("GradScaler: unscale_: expected one call since update(), got another one")
        found: dict[str, Tensor] = {}
        parameters = [p for g in optimizer.param_groups for p in g["params"]]
        with no_grad():
            for kind in by_kind(p.grad for p in parameters if p.grad is not None):
                where = str(kind[0].device)
                flag = found.setdefault(where, zeros(1, dtype=_core.int32, device=where))
                wide = _core.float64 if kind[0].dtype == _core.float64 else _core.float32
                inverse = (1.0 / self._scale_on(where).to(dtype=_core.float64)).to(dtype=wide)
                packed = [g if g.is_contiguous else g.contiguous() for g in kind]
                _core._multi_scale_(packed, inverse, flag)
                for g, p in zip(kind, packed, strict=True):
                    if g is not p:
                        g.assign_(p)
        if not found:
            raise _core.Error("GradScaler: unscale_: expected at least one gradient, got none")
        if len(found) > 1:  # one device's infinity stops the step on all
            total = sum((f.to(device=next(iter(found))) for f in list(found.values())[1:]), next(iter(found.values())))
            found = {where: total.to(device=where) for where in found}
        for where in {str(p.device) for p in parameters} - found.keys():
            found[where] = next(iter(found.values())).to(device=where)
        self._found[id(optimizer)] = found

    def step(self, optimizer: Optimizer) -> None:
        """unscale_() if that has not happened, then optimizer.step(), which does nothing after infinite gradients."""
        if not self._enabled:
            optimizer.step()
            return
        if id(optimizer) in self._stepped:
            raise _core.Error("GradScaler: step: expected one call since update(), got another one")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        optimizer._skip = self._found[id(optimizer)]
        try:
            optimizer.step()
        finally:
            optimizer._skip = None
        self._stepped.add(id(optimizer))

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends a step of all optimizers: the next scale is found, or the one given is taken."""
        if not self._enabled:
            return
        start = self._start if new_scale is None else _check_scale("GradScaler: update: new_scale", new_scale)
        flags = [next(iter(found.values())) for found in self._found.values()]
        self._found, self._stepped = {}, set()
        if new_scale is not None:
            self._start = start
            if self._scale is not None:
                self._scale.fill_(self._start)
            return
        if not flags or self._scale is None or self._since is None:
            raise _core.Error("GradScaler: update: expected a step before, got none")
        with no_grad():
            bad = _core.cat([f.to(device=self._scale.device) for f in flags]).sum() > 0
            since = self._since + 1
            grown = self._scale * self._growth
            due = (since >= self._interval) & ~bad
            larger = _core.where(_core.isfinite(grown), grown, self._scale)
            scale = _core.where(bad, self._scale * self._backoff, _core.where(due, larger, self._scale))
            self._scale.assign_(scale)
            self._since.assign_(_core.where(bad | due, since * 0, since))

    def get_scale(self) -> float:
        """The scale; reads it from the device. 1 when not enabled."""
        if not self._enabled:
            return 1.0
        return self._start if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough good steps."""
        return self._growth

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff

    def get_growth_interval(self) -> int:
        """How many good steps are enough."""
        return self._interval

    def state_dict(self) -> dict[str, Any]:
        """Numbers under PyTorch's names; empty when not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._start_growth if self._since is None else int(self._since.item()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes over a saved state, PyTorch's included; one that is refused changes nothing."""
        where = "GradScaler.load_state_dict"
        if not self._enabled:
            return
        mapping(where, state, ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"))
        _check_factors(where, state["growth_factor"], state["backoff_factor"], state["growth_interval"])
        start = _check_scale(f"{where}: scale", state["scale"])
        self._start_growth = int(number(f"{where}: _growth_tracker", state["_growth_tracker"]))
        self._start = start
        self._growth, self._backoff = state["growth_factor"], state["backoff_factor"]
        self._interval = state["growth_interval"]
        if self._scale is not None and self._since is not None:
            self._scale.fill_(self._start)
            self._since.fill_(self._start_growth)

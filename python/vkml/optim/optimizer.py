"""The base of the optimizers: groups, states, and steps of two dispatches for all parameters of a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import tensor
from ..autograd import enable_grad, no_grad
from ..nn.utils import by_kind
from ._checks import number
from ._saved import checked_state

__all__ = ["Optimizer", "refuse_setting"]


def refuse_setting(optimizer: Any, text: str) -> None:
    raise _core.ShapeError(f"{type(optimizer).__name__}: {text}")


class _Group(dict):
    """A parameter group whose numbers reach the device when they are set: a captured step then follows them."""

    def __init__(
        self, values: dict[str, Any], check: Callable[[dict, dict], None], changed: Callable[[_Group], None]
    ) -> None:
        super().__init__(values)
        self._check, self._changed = check, changed

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *args: Any, **kwargs: Any) -> None:
        values = dict(*args, **kwargs)
        self._check(self, values)
        super().update(values)
        self._changed(self)

    def __ior__(self, values: Any) -> _Group:  # type: ignore[override, misc]
        self.update(values)
        return self

    def setdefault(self, name: str, value: Any = None) -> Any:
        if name not in self:
            self.update({name: value})
        return self[name]

    def __reduce__(self) -> tuple:
        return (dict, (dict(self),))


class _Engine:
    """The tensors of one group that share dtype and device, with their states."""

    def __init__(self, parameters: list[Tensor], names: tuple[str, ...], settings: dict) -> None:
        self.parameters, self.names = parameters, names
        self.places = [p.data_ptr() for p in parameters]
        self.packed = [p.detach() if p.is_contiguous else p.detach().contiguous() for p in parameters]
        self.core = _core._MultiTensorOptimizer(self.packed, **settings)

    def step(self, skip: Tensor | None) -> None:
        """One step; parameters with gaps or another order in memory go through packed copies."""
        strided = [(p.detach(), q) for p, q in zip(self.parameters, self.packed, strict=True) if not p.is_contiguous]
        with no_grad():
            if strided:
                _core.assign([q for _, q in strided], [p for p, _ in strided])
            self.core.step([p.grad for p in self.parameters], skip)
            if strided:
                _core.assign([p for p, _ in strided], [q for _, q in strided])

    def current(self, names: tuple[str, ...]) -> bool:
        return self.names == names and self.places == [p.data_ptr() for p in self.parameters]

    def states(self) -> Iterator[tuple[Tensor, dict[str, Tensor], Tensor]]:
        """Every parameter with its states by name and its progress: two bias corrections, and the steps made."""
        progress = self.core.progress
        for i, p in enumerate(self.parameters):
            yield p, dict(zip(self.names, self.core.states(i), strict=True)), progress[i]


class Optimizer:
    """Base of the optimizers: parameter groups, and states that travel in state_dict().

    The numbers of a group live in device memory: a step that `vkml.capture` recorded follows a rate, or any other
    number, that is set in `param_groups` between replays.

    Parameters
    ----------
    params : tensors, or groups `{"params": [...], "lr": ...}`

    Examples
    --------
    >>> w, b = vkml.ones(2, requires_grad=True), vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.AdamW([{"params": [w]}, {"params": [b], "weight_decay": 0.0}], lr=1e-3)
    >>> [group["weight_decay"] for group in optimizer.param_groups]
    [0.01, 0.0]
    """

    _rule = ""
    _optional: tuple[str, ...] = ()  # states that a saved parameter may lack
    _products: tuple[str, ...] = ()  # PyTorch's names of what stands for the first bias corrections

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._engines: dict[int, list[_Engine]] = {}
        self._skip: dict[str, Tensor] | None = None  # of GradScaler: by device, no step where not 0
        if isinstance(params, Tensor):
            refuse_setting(self, "params: expected a list of tensors or groups, got a tensor")
        entries = list(params)
        if not entries:
            refuse_setting(self, "params: expected at least one tensor, got none")
        for group in entries if isinstance(entries[0], dict) else [{"params": entries}]:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds tensors, with options of their own."""
        if not isinstance(group, dict) or "params" not in group:
            got = f"keys {list(group)}" if isinstance(group, dict) else type(group).__name__
            refuse_setting(self, f"params: expected groups that are dicts with 'params', got {got}")
        chosen = group["params"]
        if not isinstance(chosen, Iterable):
            refuse_setting(self, f"params: expected tensors in a group, got {type(chosen).__name__}")
        made = {**self.defaults, **group, "params": [chosen] if isinstance(chosen, Tensor) else list(chosen)}
        if not made["params"]:
            refuse_setting(self, "params: expected at least one tensor in a group, got none")
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        for p in made["params"]:
            if not isinstance(p, Tensor) or not p.requires_grad or not p.is_leaf:
                refuse_setting(self, f"params: expected leaf tensors that require grad, got {p!r:.60}")
            if not p.is_floating_point():
                raise _core.DTypeError(
                    f"{type(self).__name__}: params: expected floating-point parameters, got {p.dtype}"
                )
            if any(n > 1 and stride == 0 for n, stride in zip(p.shape, p.strides, strict=True)):
                refuse_setting(self, f"params: expected elements with memory of their own, got strides {p.strides}")
            if id(p) in taken:
                refuse_setting(self, "params: expected every tensor once, got one twice")
            taken.add(id(p))
        self._check(made)
        self.param_groups.append(_Group(made, self._check_change, self._push))

    def _check(self, group: dict[str, Any]) -> None:
        name = type(self).__name__
        for option in ("lr", "weight_decay", "eps", "momentum"):
            if option in group:
                number(f"{name}: {option}", group[option])
        if "dampening" in group:
            number(f"{name}: dampening", group["dampening"], -math.inf, wanted="a finite number")
        if "betas" in group:
            betas = group["betas"]
            if not isinstance(betas, (tuple, list)) or len(betas) != 2:
                refuse_setting(self, f"betas: expected two numbers in [0, 1), got {betas!r:.200}")
            for beta in betas:
                number(f"{name}: betas", beta, below=1.0, wanted="numbers in [0, 1)")

    def _check_change(self, group: dict[str, Any], values: dict[str, Any]) -> None:
        if "lr" in values:  # a schedule may lead a rate below 0, as in PyTorch
            number(f"{type(self).__name__}: lr", values["lr"], -math.inf, wanted="a finite number")
        self._check({**group, **values, "lr": 0.0})

    # Settings as the engine takes them --------------------------------------------------------------------------------

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        raise NotImplementedError

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {}

    def _corrections(self, group: dict[str, Any], steps: int) -> list[float]:
        """What the engine keeps of both betas after so many steps."""
        settings = self._numbers(group)
        return [1 - settings.get(beta, 0.0) ** steps for beta in ("beta1", "beta2")]

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Of the states that the rule keeps with these options, as in PyTorch."""
        raise NotImplementedError

    def _push(self, group: _Group) -> None:
        for index, own in enumerate(self.param_groups):
            if own is group:
                for engine in self._engines.get(index, []):
                    if engine.names == self._names(group):
                        engine.core.set(**self._numbers(group))

    @property
    def lr(self) -> float:
        """The rate of the first group; setting it sets every group's."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, value: float) -> None:
        for group in self.param_groups:
            group["lr"] = value

    # Steps ------------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient. A closure computes the loss anew, and its value is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for index, group in enumerate(self.param_groups):
            for engine in self._engines_of(index, group):
                engine.core.set(**self._numbers(group))
                skip = None if self._skip is None else self._skip[str(engine.parameters[0].device)]
                engine.step(skip)
        return loss

    def _engines_of(self, index: int, group: dict[str, Any]) -> list[_Engine]:
        engines = self._engines.get(index)
        if engines is not None and all(e.current(self._names(group)) for e in engines):
            return engines
        made = self._build(group)
        if engines is not None:  # the module has moved, or the rule keeps other states now: what it has follows
            old = {id(p): (states, progress) for e in engines for p, states, progress in e.states()}
            for p, states, progress in (entry for e in made for entry in e.states()):
                progress.copy_(old[id(p)][1])
                for name in states.keys() & old[id(p)][0].keys():
                    states[name].copy_(old[id(p)][0][name])
        self._engines[index] = made
        return made

    def _build(self, group: dict[str, Any]) -> list[_Engine]:
        settings = {"rule": self._rule, **self._numbers(group), **self._flags(group)}
        return [_Engine(parameters, self._names(group), settings) for parameters in by_kind(group["params"])]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients, or fills them with 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else p.grad.detach().zero_()

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """States by parameter number, and the groups with numbers for tensors: in PyTorch's format, which it loads."""
        found: dict[int, dict[str, Tensor]] = {}
        groups, first = [], 0
        for index, group in enumerate(self.param_groups):
            place = {id(p): first + i for i, p in enumerate(group["params"])}
            first += len(place)
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": list(place.values())})
            for p, states, progress in (entry for e in self._engines.get(index, []) for entry in e.states()):
                made = {"step": progress[2], "bias_correction": progress[:2], **states}
                made |= {name: progress[at] for at, name in enumerate(self._products)}
                found[place[id(p)]] = {k: t.detach().clone() for k, t in made.items()}
        return {"state": dict(sorted(found.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() of the same kind of optimizer returned, PyTorch's included.

        Groups, names, shapes and dtypes are checked first: a state that is refused changes nothing.
        """
        where = f"{type(self).__name__}.load_state_dict"
        merged, found = checked_state(self, where, state_dict)
        engines = {}
        for index, group in enumerate(merged):
            if not any(id(p) in found for p in group["params"]):
                continue
            engines[index] = self._build(group)
            for p, states, progress in (entry for e in engines[index] for entry in e.states()):
                saved, numbers = found.get(id(p), ({}, [0.0, 0.0, 0.0]))
                for name in states.keys() & saved.keys():
                    states[name].copy_(saved[name])
                progress[: len(numbers)].copy_(tensor(numbers, dtype=_core.float64))
        self._engines = {}
        for own, group in zip(self.param_groups, merged, strict=True):
            own.update({k: v for k, v in group.items() if k != "params"})
        self._engines = engines

    def __getstate__(self) -> dict[str, Any]:
        kept = {k: v for k, v in vars(self).items() if k not in ("_engines", "_skip", "param_groups")}
        return {"attributes": kept, "groups": [dict(g) for g in self.param_groups], "state": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state["attributes"], _engines={}, _skip=None)
        self.param_groups = [_Group(group, self._check_change, self._push) for group in state["groups"]]
        self.load_state_dict(state["state"])

    def __repr__(self) -> str:
        options = [", ".join(f"{k}={v}" for k, v in g.items() if k != "params") for g in self.param_groups]
        return f"{type(self).__name__}({'; '.join(options)})"

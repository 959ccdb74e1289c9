"""SGD, RMSprop, Adam, AdamW, Lion: one or two dispatches per step for all parameters of a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import as_tensor
from ..autograd import enable_grad

__all__ = ["SGD", "Adam", "AdamW", "Lion", "Optimizer", "RMSprop"]


def _fail(optimizer: Any, text: str) -> None:
    raise _core.ShapeError(f"{type(optimizer).__name__}: {text}")


class _Engine:
    """The tensors of one group that share dtype and device, with their states."""

    def __init__(self, parameters: list[Tensor], settings: dict) -> None:
        self.parameters = parameters
        self.places = [p.data_ptr() for p in parameters]
        self.core = _core._MultiTensorOptimizer([p.detach() for p in parameters], **settings)

    def current(self) -> bool:
        return self.places == [p.data_ptr() for p in self.parameters]

    def states(self) -> dict[int, list[Tensor]]:
        return {id(p): self.core.states(i) for i, p in enumerate(self.parameters)}


class Optimizer:
    """Base of the optimizers: parameter groups, and states that travel in state_dict().

    Parameters
    ----------
    params : tensors, or groups `{"params": [...], "lr": ...}`
    """

    _rule = ""
    _names: tuple[str, ...] = ()  # of the states, as in PyTorch

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._engines: dict[int, list[_Engine]] = {}
        if isinstance(params, Tensor):
            _fail(self, "params: expected a list of tensors or groups, got a tensor")
        entries = list(params)
        if not entries:
            _fail(self, "params: expected at least one tensor, got none")
        for group in entries if isinstance(entries[0], dict) else [{"params": entries}]:
            self.add_param_group(group)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds tensors, with options of their own."""
        chosen = group["params"]
        made = {**self.defaults, **group, "params": [chosen] if isinstance(chosen, Tensor) else list(chosen)}
        if not made["params"]:
            _fail(self, "params: expected at least one tensor in a group, got none")
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        for p in made["params"]:
            if not isinstance(p, Tensor) or not p.requires_grad or not p.is_leaf:
                _fail(self, f"params: expected leaf tensors that require grad, got {p!r:.60}")
            if id(p) in taken:
                _fail(self, "params: expected every tensor once, got one twice")
            taken.add(id(p))
        self._check(made)
        self.param_groups.append(made)

    def _check(self, group: dict[str, Any]) -> None:
        if not (group["lr"] >= 0 and math.isfinite(group["lr"])):
            _fail(self, f"lr: expected a number >= 0, got {group['lr']}")
        for name in ("weight_decay", "eps", "momentum"):
            if name in group and not group[name] >= 0:
                _fail(self, f"{name}: expected a number >= 0, got {group[name]}")
        for beta in group.get("betas", ()):
            if not 0 <= beta < 1:
                _fail(self, f"betas: expected numbers in [0, 1), got {group['betas']}")

    # Settings as the engine takes them --------------------------------------------------------------------------------

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        raise NotImplementedError

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {}

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
                engine.core.step([p.grad for p in engine.parameters])
        return loss

    def _engines_of(self, index: int, group: dict[str, Any]) -> list[_Engine]:
        engines = self._engines.get(index)
        if engines is not None and all(e.current() for e in engines):
            return engines
        made = self._build(group)
        if engines is not None:  # the module has moved: the states follow
            old = [(e, e.states()) for e in engines]
            for e in made:
                for i, p in enumerate(e.parameters):
                    for source, states in old:
                        if id(p) in states:
                            for target, state in zip(e.core.states(i), states[id(p)], strict=True):
                                target.copy_(state)
                            e.core.numbers.copy_(source.core.numbers)
        self._engines[index] = made
        return made

    def _build(self, group: dict[str, Any]) -> list[_Engine]:
        kinds: dict[tuple, list[Tensor]] = {}
        for p in group["params"]:
            kinds.setdefault((str(p.dtype), str(p.device)), []).append(p)
        settings = {"rule": self._rule, **self._numbers(group), **self._flags(group)}
        return [_Engine(parameters, settings) for parameters in kinds.values()]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients, or fills them with 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else p.grad.detach().zero_()

    # State ------------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """States by parameter number, and the groups with numbers for tensors."""
        state: dict[int, dict[str, Tensor]] = {}
        groups, number = [], 0
        for index, group in enumerate(self.param_groups):
            numbers = list(range(number, number + len(group["params"])))
            number += len(numbers)
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": numbers})
            place = {id(p): n for p, n in zip(group["params"], numbers, strict=True)}
            for engine in self._engines.get(index, []):
                for i, p in enumerate(engine.parameters):
                    named = dict(zip(self._names, engine.core.states(i), strict=False))
                    state[place[id(p)]] = {**named, "numbers": engine.core.numbers}
        return {
            "state": {n: {k: t.detach().clone() for k, t in s.items()} for n, s in sorted(state.items())},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict() of the same kind of optimizer returned."""
        groups, state = state_dict["param_groups"], state_dict["state"]
        sizes = [len(g["params"]) for g in self.param_groups]
        if [len(g["params"]) for g in groups] != sizes:
            _fail(
                self,
                f"load_state_dict: expected groups of {sizes} parameters, got {[len(g['params']) for g in groups]}",
            )
        self._engines = {}
        for index, (own, given) in enumerate(zip(self.param_groups, groups, strict=True)):
            own.update({k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k != "params"})
            place = {id(p): n for p, n in zip(own["params"], given["params"], strict=True)}
            if not any(n in state for n in given["params"]):
                continue
            self._engines[index] = self._build(own)
            for engine in self._engines[index]:
                for i, p in enumerate(engine.parameters):
                    saved = state.get(place[id(p)], {})
                    for name, target in zip(self._names, engine.core.states(i), strict=False):
                        if name in saved:
                            target.copy_(as_tensor(saved[name]))
                    if "numbers" in saved:
                        engine.core.numbers.copy_(as_tensor(saved["numbers"]))

    def __repr__(self) -> str:
        options = [", ".join(f"{k}={v}" for k, v in g.items() if k != "params") for g in self.param_groups]
        return f"{type(self).__name__}({'; '.join(options)})"


class SGD(Optimizer):
    """Gradient descent with momentum.

    Examples
    --------
    >>> p = vkml.ones((), requires_grad=True)
    >>> opt = vkml.optim.SGD([p], lr=0.25)
    >>> (p * p).backward()
    >>> opt.step()
    >>> p.item()
    0.5
    """

    _rule, _names = "sgd", ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        momentum: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        dampening: float = 0,
    ) -> None:
        options = {
            "lr": lr,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "dampening": dampening,
        }
        super().__init__(params, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            _fail(self, "nesterov: expected a momentum above 0 and no dampening")

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "beta1": group["momentum"],
            "dampening": group["dampening"],
        }

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {"nesterov": group["nesterov"]}


class RMSprop(Optimizer):
    """Gradients over the root of their mean square."""

    _rule, _names = "rmsprop", ("square_avg", "grad_avg", "momentum_buffer")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
        }
        super().__init__(params, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not 0 <= group["alpha"] <= 1:
            _fail(self, f"alpha: expected a number in [0, 1], got {group['alpha']}")

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        decay = {"lr": group["lr"], "weight_decay": group["weight_decay"]}
        return {**decay, "beta1": group["momentum"], "beta2": group["alpha"], "eps": group["eps"]}

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {"centered": group["centered"]}


class _Betas(Optimizer):
    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "beta1": beta1,
            "beta2": beta2,
            "eps": group.get("eps", 0.0),
        }


class Adam(_Betas):
    """Adaptive moments (Kingma and Ba, 2015); weight decay is added to the gradient."""

    _rule, _names = "adam", ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay})


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    _rule = "adamw"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


class Lion(_Betas):
    """The sign of an interpolated momentum (Chen et al., 2023)."""

    _rule, _names = "lion", ("exp_avg",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": tuple(betas), "weight_decay": weight_decay})

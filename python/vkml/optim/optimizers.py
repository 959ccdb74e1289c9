"""The rules: SGD, RMSprop, Adagrad, Adam, AdamW, NAdam, Lion."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ._checks import number
from .optimizer import Optimizer, refuse_setting

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Lion", "NAdam", "RMSprop"]


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

    _rule, _optional = "sgd", ("momentum_buffer",)

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
            refuse_setting(self, "nesterov: expected a momentum above 0 and no dampening")

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "beta1": group["momentum"],
            "dampening": group["dampening"],
        }

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {"nesterov": group["nesterov"]}

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()


class RMSprop(Optimizer):
    """Gradients over the root of their mean square.

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _rule, _optional = "rmsprop", ("grad_avg", "momentum_buffer")

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
        number("RMSprop: alpha", group["alpha"], below=math.nextafter(1, 2), wanted="a number in [0, 1]")

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        decay = {"lr": group["lr"], "weight_decay": group["weight_decay"]}
        return {**decay, "beta1": group["momentum"], "beta2": group["alpha"], "eps": group["eps"]}

    def _flags(self, group: dict[str, Any]) -> dict[str, bool]:
        return {"centered": group["centered"]}

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        optional = (("grad_avg", group["centered"]), ("momentum_buffer", group["momentum"]))
        return ("square_avg", *(name for name, kept in optional if kept))


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares (Duchi et al., 2011).

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _rule = "adagrad"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
    ) -> None:
        options = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
        }
        super().__init__(params, options)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for option in ("lr_decay", "initial_accumulator_value"):
            number(f"Adagrad: {option}", group[option])

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {
            "lr": group["lr"],
            "weight_decay": group["weight_decay"],
            "beta1": group["lr_decay"],
            "eps": group["eps"],
            "dampening": group["initial_accumulator_value"],
        }

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("sum",)


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

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")


class Adam(_Betas):
    """Adaptive moments (Kingma and Ba, 2015); weight decay is added to the gradient.

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _rule = "adam"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter, 2019).

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.AdamW([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8990])
    """

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


class NAdam(_Betas):
    """Adam with Nesterov's momentum (Dozat, 2016); weight decay is added to the gradient.

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8944])
    """

    _rule, _products = "nadam", ("mu_product",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
    ) -> None:
        options = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay}
        super().__init__(params, {"lr": lr, **options})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        number("NAdam: momentum_decay", group["momentum_decay"])

    def _numbers(self, group: dict[str, Any]) -> dict[str, float]:
        return {**super()._numbers(group), "dampening": group["momentum_decay"]}

    def _corrections(self, group: dict[str, Any], steps: int) -> list[float]:
        beta, decay = group["betas"][0], group["momentum_decay"]
        product = math.prod(beta * (1 - 0.5 * 0.96 ** (t * decay)) for t in range(1, steps + 1))
        return [product, super()._corrections(group, steps)[1]]


class Lion(_Betas):
    """The sign of an interpolated momentum (Chen et al., 2023).

    Examples
    --------
    >>> w = vkml.ones(1, requires_grad=True)
    >>> optimizer = vkml.optim.Lion([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000])
    """

    _rule = "lion"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def _names(self, group: dict[str, Any]) -> tuple[str, ...]:
        return ("exp_avg",)

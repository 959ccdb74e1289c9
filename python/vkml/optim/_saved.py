"""A saved state of an optimizer, checked as a whole before anything takes it over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core import Tensor
from ._checks import array, as_number, mapping, number, refuse

__all__ = ["checked_state"]

# Options of PyTorch's groups that say how it computes, or that must be off.
_TORCH_ONLY = {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"}
_TORCH_UNSUPPORTED = {"amsgrad", "maximize"}

Found = tuple[dict[str, Tensor], list[float]]


def checked_state(optimizer: Any, where: str, given: Any) -> tuple[list[dict[str, Any]], dict[int, Found]]:
    """The groups with the saved options; by the id of a parameter its states, two bias corrections and steps."""
    mapping(where, given, ("param_groups", "state"))
    groups, saved = given["param_groups"], given["state"]
    mapping(f"{where}: state", saved, ())
    if not isinstance(groups, (list, tuple)):
        refuse(f"{where}: param_groups", "a list", type(groups).__name__)
    for index, group in enumerate(groups):
        mapping(f"{where}: param_groups[{index}]", group, ("params", "lr"))
        if not isinstance(group["params"], (list, tuple)):
            refuse(f"{where}: param_groups[{index}]: params", "a list", type(group["params"]).__name__)
    sizes, others = [[len(g["params"]) for g in which] for which in (optimizer.param_groups, groups)]
    if others != sizes:
        refuse(where, f"groups of {sizes} parameters", f"{others}")
    numbers = [n for g in groups for n in g["params"]]
    if any(not isinstance(n, (int, str)) for n in numbers) or len(set(numbers)) < len(numbers):
        refuse(where, "every parameter number once", f"{numbers}")
    for n in saved:
        if n not in numbers:
            refuse(where, f"states of the parameters {numbers}", f"one of {n!r}")
    merged, found = [], {}
    for own, other in zip(optimizer.param_groups, groups, strict=True):
        group = {**own, **_options(where, other)}
        optimizer._check(group)
        merged.append(group)
        for p, n in zip(own["params"], other["params"], strict=True):
            if saved.get(n):
                found[id(p)] = _entry(optimizer, f"{where}: state {n}", group, p, saved[n])
    return merged, found


def _options(where: str, group: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a saved group that mean something here."""
    for name in _TORCH_UNSUPPORTED & group.keys():
        if group[name]:
            refuse(f"{where}: {name}", "False", group[name])
    out = {k: v for k, v in group.items() if k not in {"params", *_TORCH_ONLY, *_TORCH_UNSUPPORTED}}
    out["lr"] = number(f"{where}: lr", out["lr"])
    return {k: tuple(v) if isinstance(v, list) else v for k, v in out.items()}


def _entry(optimizer: Any, where: str, group: dict[str, Any], p: Tensor, entry: Any) -> Found:
    mapping(where, entry, ())
    names, optional = optimizer._names(group), optimizer._optional
    kept = {k: v for k, v in entry.items() if v is not None}
    known = {*names, *optional, *optimizer._products, "step", "bias_correction"}
    for name in kept.keys() - known:
        refuse(where, f"states named {', '.join(sorted(known))}", f"{name!r}")
    mapping(where, kept, [name for name in names if name not in optional])
    states = {name: array(f"{where}: {name}", kept[name], p.shape) for name in names if name in kept}
    if "exp_avg_sq" in states and "step" not in kept:  # PyTorch's SGD alone saves no steps
        refuse(where, "'step' in it", f"{list(kept)}")
    if "step" in kept and as_number(kept["step"]) is None:
        refuse(f"{where}: step", "a number", kept["step"])
    steps = number(f"{where}: step", kept.get("step", 1.0 if "momentum_buffer" in kept else 0.0))
    if "bias_correction" in kept:
        corrections = array(f"{where}: bias_correction", kept["bias_correction"], (2,)).tolist()
    else:
        corrections = optimizer._corrections(group, int(steps))
        for at, name in enumerate(optimizer._products):
            if name in kept:
                corrections[at] = number(f"{where}: {name}", kept[name])
    return states, [*corrections, steps]

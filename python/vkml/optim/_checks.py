"""What optimizers, schedules, scalers and averages check before they take anything over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from .. import _core
from .._core import Tensor
from .._creation import as_tensor

__all__ = ["array", "as_number", "check_number", "check_setting", "checked_schedule", "mapping", "number", "refuse"]


def refuse(where: str, wanted: str, got: Any) -> NoReturn:
    shown = got if isinstance(got, str) else repr(got)
    raise _core.ShapeError(f"{where}: expected {wanted}, got {shown:.200}")


def as_number(value: Any) -> float | None:
    """A number, or a tensor or array of one element, as a float; None for anything else."""
    if not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def number(where: str, value: Any, least: float = 0.0, below: float = math.inf, wanted: str = "") -> float:
    """A finite number >= least and < below, or the refusal."""
    found = as_number(value)
    if found is None or not (math.isfinite(found) and least <= found < below):
        refuse(where, wanted or f"a finite number >= {least:g}", repr(value))
    return found


def mapping(where: str, value: Any, names: Iterable[str]) -> None:
    """Refuses what is not a mapping that has these names."""
    if not isinstance(value, Mapping):
        refuse(where, "a mapping, as state_dict() returns", type(value).__name__)
    for name in names:
        if name not in value:
            refuse(where, f"{name!r} in it", f"{list(value)}")


def array(where: str, value: Any, shape: tuple[int, ...], floating: bool = True) -> Tensor:
    """A tensor of this shape from a tensor or array, or the refusal."""
    try:
        found = as_tensor(value).detach()
    except Exception:  # of other libraries too: whatever it was, it is no tensor
        refuse(where, f"a tensor of shape {shape}", f"{type(value).__name__}")
    if found.shape != tuple(shape):
        refuse(where, f"shape {tuple(shape)}", f"{found.shape}")
    if floating and not found.is_floating_point():
        raise _core.DTypeError(f"{where}: expected a floating-point tensor, got {found.dtype}")
    return found


def checked_schedule(schedule: Any, state: Any) -> None:
    """Refuses a saved state whose values are not of the kind the schedule's own are."""
    where = f"{type(schedule).__name__}.load_state_dict"
    mapping(where, state, ("last_epoch",))
    number(f"{where}: last_epoch", state["last_epoch"])
    if hasattr(schedule, "_schedulers"):
        mapping(where, state, ("schedulers",))
        saved = state["schedulers"]
        if not isinstance(saved, (list, tuple)) or len(saved) != len(schedule._schedulers):
            refuse(f"{where}: schedulers", f"{len(schedule._schedulers)} states", saved)
        for part, part_state in zip(schedule._schedulers, saved, strict=True):
            checked_schedule(part, part_state)
    for name, own in vars(schedule).items():
        if name not in state or own is None or state[name] is None:
            continue
        value = state[name]
        if isinstance(own, list):
            listed = isinstance(value, (list, tuple)) and all(as_number(v) is not None for v in value)
            if not listed or (name.endswith("_lrs") and len(value) != len(own)):
                refuse(f"{where}: {name}", f"{len(own)} numbers", value)
        elif isinstance(own, (int, float)) and as_number(value) is None:
            refuse(f"{where}: {name}", "a number", value)


def check_setting(schedule: Any, name: str, value: Any, good: bool, wanted: str) -> None:
    if not good:
        raise _core.ShapeError(f"{type(schedule).__name__}: {name}: expected {wanted}, got {value}")


def check_number(
    schedule: Any, name: str, value: Any, least: float = 0.0, most: float = math.inf, wanted: str = ""
) -> None:
    number(f"{type(schedule).__name__}: {name}", value, least, math.nextafter(most, math.inf), wanted)

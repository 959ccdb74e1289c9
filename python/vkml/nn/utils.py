"""Gradient clipping, and parameters as one vector."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import zeros
from ..autograd import no_grad

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]


def by_kind(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """The tensors in lists of one dtype and device, as passes over many tensors take them."""
    kinds: dict[tuple, list[Tensor]] = {}
    for t in tensors:
        kinds.setdefault((str(t.dtype), str(t.device)), []).append(t)
    return list(kinds.values())


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    found = [p.grad for p in ([parameters] if isinstance(parameters, Tensor) else parameters)]
    return [g for g in found if g is not None]


def _check(where: str, value: Any) -> None:
    if not isinstance(value, Tensor) and not (isinstance(value, numbers.Real) and float(value) >= 0):
        raise _core.ShapeError(f"{where}: expected a number >= 0, got {value!r:.60}")


def _check_norm_type(where: str, norm_type: Any) -> None:
    if not (isinstance(norm_type, numbers.Real) and float(norm_type) > 0):
        raise _core.ShapeError(f"{where}: norm_type: expected a number above 0, got {norm_type!r:.60}")


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scales all gradients together so that their norm is at most max_norm; returns the norm they had.

    A non-finite norm is returned as it is, or raises Error before any write if asked.

    Examples
    --------
    >>> p = vkml.zeros(2, requires_grad=True)
    >>> p.grad = vkml.tensor([3.0, 4.0])
    >>> vkml.nn.utils.clip_grad_norm_([p], 1.0).item()
    5.0
    """
    _check("clip_grad_norm_: max_norm", max_norm)
    _check_norm_type("clip_grad_norm_", norm_type)
    chosen = _gradients(parameters)
    if not chosen:
        return zeros(())
    with no_grad():
        norm = _total_norm(chosen, float(norm_type))
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise _core.Error(f"clip_grad_norm_: expected a finite norm, got {norm.item()}")
        scale = _core.minimum(max_norm / (norm + 1e-6), 1.0)
        for kind in by_kind(g for g in chosen if g.is_contiguous):
            _core._multi_scale_(kind, scale.to(device=kind[0].device, dtype=_wide(kind[0])))
        for g in chosen:
            if not g.is_contiguous:
                g.assign_((g * scale.to(device=g.device)).to(dtype=g.dtype))
    return norm


def get_total_norm(tensors: Any, norm_type: float = 2.0) -> Tensor:
    """The norm of all elements of all tensors together, on the device of the first.

    Examples
    --------
    >>> vkml.nn.utils.get_total_norm([vkml.tensor([3.0]), vkml.tensor([4.0])]).item()
    5.0
    """
    _check_norm_type("get_total_norm", norm_type)
    chosen = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return _total_norm(chosen, float(norm_type)) if chosen else zeros(())


def _wide(t: Tensor) -> Any:
    return _core.float64 if t.dtype == _core.float64 else _core.float32


def _total_norm(gradients: list[Tensor], norm_type: float) -> Tensor:
    home = gradients[0].device
    if norm_type == 2.0:
        norms = [_core._multi_norm(kind).to(device=home) for kind in by_kind(g.contiguous() for g in gradients)]
        return norms[0] if len(norms) == 1 else _core.sqrt(_core.stack([n * n for n in norms]).sum())
    wide = [g.to(dtype=_wide(g)) for g in gradients]
    if math.isinf(norm_type):
        parts = [g.abs().amax().to(device=home) for g in wide if g.numel()]
        return _core.stack(parts).amax() if parts else zeros((), device=home)
    sums = [_core.pow(g.abs(), norm_type).sum().to(device=home) for g in wide]
    return _core.pow(_core.stack(sums).sum(), 1 / norm_type)


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Clamps every element of every gradient to [-clip_value, clip_value].

    Examples
    --------
    >>> w = vkml.tensor([1.0, -3.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> vkml.nn.utils.clip_grad_value_([w], 4.0)
    >>> w.grad
    tensor([ 2., -4.])
    """
    _check("clip_grad_value_: clip_value", clip_value)
    with no_grad():
        for g in _gradients(parameters):
            g.assign_(_core.clamp(g, -clip_value, clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened one after the other.

    Examples
    --------
    >>> vkml.nn.utils.parameters_to_vector(vkml.nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    chosen = list(parameters)
    if not chosen:
        raise _core.ShapeError("parameters_to_vector: expected at least one parameter, got none")
    return _core.cat([p.reshape(-1) for p in chosen])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into parameters, one after the other. Checked before any write.

    Examples
    --------
    >>> layer = vkml.nn.Linear(2, 1)
    >>> vkml.nn.utils.vector_to_parameters(vkml.tensor([1.0, 2.0, 3.0]), layer.parameters())
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[1.0, 2.0]], [3.0])
    """
    chosen = list(parameters)
    total = sum(p.numel() for p in chosen)
    if vec.shape != (total,):
        raise _core.ShapeError(f"vector_to_parameters: expected shape ({total},), got {vec.shape}")
    at = 0
    with no_grad():
        for p in chosen:
            p.copy_(vec.detach().narrow(0, at, p.numel()).reshape(p.shape))
            at += p.numel()

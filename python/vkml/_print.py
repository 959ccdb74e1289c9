"""`repr` of a tensor: values as PyTorch shows them, shortened, and never an exception."""

from __future__ import annotations

import numpy as np

from . import _core

_THRESHOLD = 1000  # more elements than this are shortened
_EDGE = 3


def _shown(t: _core.Tensor) -> np.ndarray:
    """The values that will be printed: the corners only, where the rest becomes '...'."""
    if t.device.type != "cpu" and t.numel() > _THRESHOLD:
        for axis, extent in enumerate(t.shape):
            if extent > 2 * _EDGE + 1:
                # One element more than is shown, so that NumPy still writes the dots.
                head, tail = t.narrow(axis, 0, _EDGE + 1), t.narrow(axis, extent - _EDGE, _EDGE)
                t = _core.cat([head, tail], axis) if hasattr(_core, "cat") else t
    return np.asarray(t.detach())


def _values(t: _core.Tensor) -> str:
    values = _shown(t)
    options: dict = {"separator": ", ", "prefix": "tensor(", "edgeitems": _EDGE, "max_line_width": 100}
    options["threshold"] = _THRESHOLD if t.numel() <= _THRESHOLD else 0
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)].astype(np.float64)
        whole = bool(np.all(finite == np.trunc(finite))) and (finite.size == 0 or np.abs(finite).max() < 1e8)
        options |= {"precision": 4, "floatmode": "maxprec" if whole else "fixed"}
    if t.numel() == 0:
        return "[]"
    return np.array2string(values, **options)


def _details(t: _core.Tensor) -> list[str]:
    out = []
    if t.numel() == 0 and t.shape != (0,):
        out.append(f"size={t.shape}")
    if t.device.type != "cpu":
        out.append(f"device='{t.device}'")
    plain = (_core.get_default_dtype(), _core.int64, _core.bool_)
    if t.dtype not in plain or (t.numel() == 0 and t.dtype != plain[0]):
        out.append(f"dtype={t.dtype!r}")
    if t.grad_fn is not None:
        out.append(f"grad_fn={t.grad_fn!r}")
    elif t.requires_grad:
        out.append("requires_grad=True")
    return out


def text(t: _core.Tensor) -> str:
    if not t.defined():
        return "tensor(<undefined>)"
    name = "tensor" if type(t) is _core.Tensor else type(t).__name__
    try:
        values = _values(t)
    except Exception as error:  # a lost device, a capture that is recording: repr still answers
        values = f"<{t.shape}: {type(error).__name__}: {error}>"
    return f"{name}({', '.join([values, *_details(t)])})"


def formatted(t: _core.Tensor, spec: str) -> str:
    return format(t.item(), spec) if spec and t.numel() == 1 else text(t)

"""Conversions and comparisons the tests share. NaN matches NaN, infinities match exactly, shapes must agree."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkml

try:
    from ml_dtypes import bfloat16
except ImportError:  # then bfloat16 values travel as the float32 they are
    bfloat16 = np.float32

NUMPY = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float16": np.float16, "bfloat16": bfloat16, "float32": np.float32, "float64": np.float64,
}  # fmt: skip
FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
ALL = (*FLOATS, *INTEGERS, "bool")

# Distance of 1 to the next value, and the smallest normal one.
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def is_float(dtype: str) -> bool:
    return dtype in EPS


def dtype_name(x: Any) -> str:
    return str(getattr(x, "dtype", x)).removeprefix("vkml.")


def rounded(values: Any, dtype: str) -> np.ndarray:
    """The values as `dtype` holds them: float64 for floating dtypes, else the dtype's own NumPy type."""
    array = np.asarray(values)
    if dtype == "bfloat16":
        return rounded_to_bfloat16(array.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        held = array.astype(NUMPY[dtype])
    return held.astype(np.float64) if is_float(dtype) else held


def rounded_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """To nearest, ties to even, once."""
    _, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    with np.errstate(over="ignore", invalid="ignore"):
        held = np.rint(values / step) * step
    held = np.where(np.isfinite(values), held, values)
    return np.where(np.abs(held) > 3.3895313892515355e38, np.copysign(np.inf, held), held)


def tensor(values: Any, dtype: str = "float32", device: str = "cpu", requires_grad: bool = False) -> vkml.Tensor:
    """A packed tensor of the values rounded to `dtype`."""
    out = vkml.tensor(rounded(values, dtype).astype(NUMPY[dtype]), dtype=dtype, device=device)
    return out.requires_grad_() if requires_grad else out


def to_numpy(x: Any) -> np.ndarray:
    """Values on the host: float64 for floats, else as they are."""
    if isinstance(x, vkml.Tensor):
        array = np.asarray(x.detach().numpy() if x.requires_grad else x.numpy())
    else:
        array = np.asarray(x)
    return array.astype(np.float64) if array.dtype.kind == "f" or array.dtype == np.dtype(bfloat16) else array


def bits(x: vkml.Tensor) -> bytes:
    """The elements' bits in row-major order: -0 and NaN payloads included."""
    name = dtype_name(x)
    array = np.asarray(x.detach().numpy())
    return np.ascontiguousarray(array.astype(NUMPY[name])).tobytes()


def spacing(values: np.ndarray, dtype: str) -> np.ndarray:
    """One ulp of `dtype` at each value; at the smallest normal below it, so results near 0 have a floor."""
    magnitude = np.maximum(np.abs(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)), TINY[dtype])
    return 2.0 ** np.floor(np.log2(magnitude)) * EPS[dtype]


def assert_within(got: np.ndarray, expected: np.ndarray, allowed: np.ndarray | float, what: str = "") -> None:
    """|got - expected| <= allowed for every element; the failure names the worst one."""
    got, expected = np.asarray(got), np.asarray(expected)
    prefix = f"{what}: " if what else ""
    assert got.shape == expected.shape, f"{prefix}shape {got.shape}, expected {expected.shape}"
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    same = (got == expected) | (np.isnan(_floating(got)) & np.isnan(_floating(expected)))
    finite = np.isfinite(_floating(got)) & np.isfinite(_floating(expected))
    bad = ~(same | (finite & (error <= allowed)))
    if not bad.any():
        return
    share = np.where(bad, np.where(finite, error / np.maximum(allowed, 1e-300), np.inf), -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(share)), got.shape))
    limit = np.broadcast_to(allowed, got.shape)[at]
    raise AssertionError(
        f"{prefix}{int(bad.sum())} of {got.size} elements are off; worst at {at}: got {got[at]!r}, "
        f"expected {expected[at]!r}, error {error[at]:.3g}, allowed {limit:.3g}"
    )


def assert_close(got: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0, what: str = "") -> None:
    """|got - expected| <= atol + rtol |expected|, with both 0 unless given."""
    wanted = to_numpy(expected)
    magnitude = np.abs(np.nan_to_num(wanted.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0))
    assert_within(to_numpy(got), wanted, atol + rtol * magnitude, what)


def assert_same_bits(a: vkml.Tensor, b: vkml.Tensor, what: str = "") -> None:
    assert dtype_name(a) == dtype_name(b), f"{what}: dtype {dtype_name(a)} and {dtype_name(b)}"
    assert tuple(a.shape) == tuple(b.shape), f"{what}: shape {tuple(a.shape)} and {tuple(b.shape)}"
    if bits(a) != bits(b):
        x, y = to_numpy(a).ravel(), to_numpy(b).ravel()
        at = np.flatnonzero((x != y) & ~(np.isnan(_floating(x)) & np.isnan(_floating(y))))
        where = (
            f"first at flat index {at[0]}: {x[at[0]]!r} and {y[at[0]]!r}" if at.size else "in signs of 0 or NaN bits"
        )
        raise AssertionError(f"{what}: bits differ, {where}")


def _floating(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind != "f" else x


# Layouts: the same values lying differently. Each takes values and makes (tensor, the values it shows).


def _packed(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    return make(a), a


def _transposed(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    return make(np.ascontiguousarray(a.T)).permute(*range(a.ndim)[::-1]), a


def _rotated(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    stored = np.ascontiguousarray(np.moveaxis(a, -1, 0))
    return make(stored).permute(*range(1, a.ndim), 0), a


def _stepped(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    stored = np.repeat(a, 3, axis=-1)
    stored[..., 1::3], stored[..., 2::3] = 1, 0  # what lies between must not be read
    return make(stored)[..., ::3], a


def _offset(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    stored = np.ones((a.shape[0] + 2, *a.shape[1:-1], a.shape[-1] + 3) if a.ndim > 1 else (a.shape[0] + 2,), a.dtype)
    inside = (slice(1, -1), Ellipsis, slice(1, -2)) if a.ndim > 1 else (slice(1, -1),)
    stored[inside] = a
    return make(stored)[inside], a


def _expanded(a: np.ndarray, make: Any) -> tuple[vkml.Tensor, np.ndarray]:
    shown = np.broadcast_to(a[:1], a.shape)
    return make(np.ascontiguousarray(a[:1])).expand(*a.shape), np.ascontiguousarray(shown)


LAYOUTS = {
    "transposed": _transposed, "rotated": _rotated, "stepped": _stepped, "offset": _offset, "expanded": _expanded,
}  # fmt: skip


def laid_out(layout: str, values: np.ndarray, dtype: str, device: str) -> tuple[vkml.Tensor, np.ndarray]:
    """A tensor that lies as the layout says, and the values it shows. Rank 0 and empty ones stay packed."""
    held = rounded(values, dtype)
    how = LAYOUTS[layout] if held.ndim and held.size else _packed
    return how(held, lambda a: tensor(a, dtype, device))


def shape_text(shapes: Sequence[Any]) -> str:
    return " ".join(str(tuple(s)) for s in shapes)


@functools.cache
def onnx_node_cases(op_type: str) -> list:
    """The node tests of one operator that onnx generates. It collects once per process: so always all of them."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases()
    return [c for c in found if c.model is not None and [n.op_type for n in c.model.graph.node] == [op_type]]

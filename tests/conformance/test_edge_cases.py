"""Edge cases that tensor libraries got wrong, each checked with PyTorch or NumPy: tests/golden/edge_cases.json.

A case calls `op` (a function of vkml) as op(*inputs, **kwargs), or evaluates `expr` after the statements of `setup`;
V is vkml, x the inputs. Numbers are compared as |got - expected| <= atol + rtol |expected|; both are 0 by default.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, bits, dtype_name, is_float, tensor, to_numpy
from not_yet import NEEDS, NOT_YET, assert_list_is_current, skip_if_not_yet

import vkml

FILE = Path(__file__).parents[1] / "golden" / "edge_cases.json"
CASES = json.loads(FILE.read_text())["cases"]

CASE_KEYS = {
    "id", "op", "expr", "setup", "inputs", "kwargs", "dtype", "expected", "expected_dtype", "expected_error", "rtol",
    "atol", "grad_of", "grad_output", "expected_grad", "grad_rtol", "grad_atol", "more", "size", "note",
}  # fmt: skip
MORE_KEYS = {"expr", "expected", "expected_dtype", "expected_error", "rtol", "atol"}
VALUE_KEYS = {
    "data",
    "fill",
    "arange",
    "rand",
    "ints",
    "runs",
    "shape",
    "dtype",
    "views",
    "probe",
    "sum",
    "abs_sum",
    "tuple",
}
SPECIAL = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


def test_there_are_cases() -> None:
    assert len(CASES) == len({c["id"] for c in CASES}) >= 80


def test_not_yet_list_is_current() -> None:
    print("not yet implemented:", ", ".join(sorted(NOT_YET)))
    assert_list_is_current()


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.large if c.get("size") == "large" else (), id=c["id"]) for c in CASES]
)
def test_edge_case(case: dict[str, Any], device: str) -> None:
    skip_if_not_yet(names_used(case))
    with vkml.device(device):
        run_case(case, device)


def names_used(case: dict[str, Any]) -> set[str]:
    texts = [case.get("expr", ""), *case.get("setup", []), *(m["expr"] for m in case.get("more", []))]
    names = set(re.findall(r"\bV\.((?:nn\.|optim\.)?\w+)", " ".join(texts))) | ({case["op"]} if "op" in case else set())
    return names | {NEEDS[name] for name in names if name in NEEDS}


def run_case(case: dict[str, Any], device: str) -> None:
    check_keys(case, CASE_KEYS)
    leaves, x = make_inputs(case, device)
    before = [None if t is None else bits(t) for t in x]
    scope = {"V": vkml, "np": np, "inf": np.inf, "nan": np.nan, "x": x, "__builtins__": __builtins__}
    for statement in case.get("setup", []):
        exec(statement, scope)

    def first() -> Any:
        if "expr" in case:
            return eval(case["expr"], scope)
        return functools.reduce(getattr, case["op"].split("."), vkml)(*x, **numbers(case.get("kwargs", {})))

    if "expected_error" in case:
        expect_error(first, case["expected_error"])
        assert before == [None if t is None else bits(t) for t in x], "an input changed though an error was raised"
    else:
        y = scope["y"] = first()
        compare(y, case["expected"], case, case.get("dtype", "float32"))
        check_gradients(case, y, leaves, device)
    for more in case.get("more", []):
        check_keys(more, MORE_KEYS)
        more = {k: case[k] for k in ("rtol", "atol") if k in case} | more  # one case relies on it
        if "expected_error" in more:
            expect_error(lambda text=more["expr"]: eval(text, scope), more["expected_error"])
        else:
            compare(eval(more["expr"], scope), more["expected"], more, "float64", more["expr"])


def check_keys(entry: dict[str, Any], known: set[str]) -> None:
    assert not entry.keys() - known, f"unknown keys {sorted(entry.keys() - known)}"
    assert ("expected" in entry) != ("expected_error" in entry), "expected or expected_error, and not both"


def expect_error(call: Any, name: str) -> None:
    with pytest.raises(getattr(vkml, name)):
        result = call()
        for y in result if isinstance(result, (tuple, list)) else [result]:
            to_numpy(y)


def check_gradients(case: dict[str, Any], y: Any, leaves: list[Any], device: str) -> None:
    if "grad_of" not in case:
        assert "expected_grad" not in case
        return
    seed = case.get("grad_output")
    given = np.ones(tuple(y.shape)) if seed is None else np.asarray(array(seed, "float64"))
    y.backward(tensor(given, dtype_name(y), device))
    tolerance = {"rtol": case.get("grad_rtol", 0), "atol": case.get("grad_atol", 0)}
    assert len(case["grad_of"]) == len(case["expected_grad"])
    for position, expected in zip(case["grad_of"], case["expected_grad"], strict=True):
        grad = leaves[position].grad
        assert grad is not None, f"input {position} has no gradient"
        assert grad.dtype == leaves[position].dtype
        compare(grad, expected, tolerance, "float64", f"gradient of input {position}")


# Values ---------------------------------------------------------------------------------------------------------------


def numbers(value: Any) -> Any:
    """Replaces the strings that stand for NaN and the infinities, at any depth."""
    if isinstance(value, str):
        return SPECIAL.get(value, value)
    if isinstance(value, list):
        return [numbers(v) for v in value]
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items()}
    return value


def philox_word0(seed: int, offset: int, count: int) -> np.ndarray:
    """Word 0 of Philox4x32-10 for elements 0 to count - 1 of a draw."""
    low = np.uint64(0xFFFFFFFF)
    index = np.arange(count, dtype=np.uint64)
    c = [index & low, index >> np.uint64(32)] + [
        np.full(count, w, np.uint64) for w in (offset & 0xFFFFFFFF, offset >> 32)
    ]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        k0, k1 = np.uint64(key[0]), np.uint64(key[1])
        c = [(q >> np.uint64(32)) ^ c[1] ^ k0, q & low, (p >> np.uint64(32)) ^ c[3] ^ k1, p & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def array(value: Any, dtype: str) -> np.ndarray:
    """A value of the file in float64, int64 or bool, before it is converted to a dtype."""
    wide = np.float64 if is_float(dtype) else np.bool_ if dtype == "bool" else np.int64
    if not isinstance(value, dict):
        return np.asarray(numbers(value), wide)
    assert not value.keys() - VALUE_KEYS, f"unknown keys {sorted(value.keys() - VALUE_KEYS)}"
    shape = tuple(value["shape"]) if "shape" in value else None
    count = int(np.prod(shape)) if shape is not None else 0
    if "data" in value:
        out = np.asarray(numbers(value["data"]), wide)
    elif "fill" in value:
        out = np.full(count, numbers(value["fill"]), wide)
    elif "arange" in value:
        start, step = value["arange"]
        out = start + step * np.arange(count)
    elif "rand" in value:
        seed, offset, scale, shift = value["rand"]
        out = (philox_word0(seed, offset, count) >> np.uint64(8)) * 2.0**-24 * scale + shift
    elif "ints" in value:
        seed, offset, low, high = value["ints"]
        out = low + ((philox_word0(seed, offset, count) * np.uint64(high - low)) >> np.uint64(32)).astype(np.int64)
    else:
        out = np.concatenate([np.full(n, numbers(v), wide) for n, v in value["runs"]])
    return np.asarray(out, wide).reshape(out.shape if shape is None else shape)


def make_inputs(case: dict[str, Any], device: str) -> tuple[list[Any], list[Any]]:
    """The leaves, and the same with their views applied."""
    leaves: list[Any] = []
    shown: list[Any] = []
    for i, value in enumerate(case.get("inputs", [])):
        if value is None:
            leaves.append(None)
            shown.append(None)
            continue
        described = value if isinstance(value, dict) else {"data": value}
        dtype = described.get("dtype", case.get("dtype", "float32"))
        leaf = tensor(array(described, dtype), dtype, device, requires_grad=i in case.get("grad_of", []))
        leaves.append(leaf)
        shown.append(functools.reduce(apply_view, described.get("views", []), leaf))
    return leaves, shown


def apply_view(t: vkml.Tensor, view: list[Any]) -> vkml.Tensor:
    kind, *args = view
    if kind == "permute":
        return t.permute(*args[0])
    if kind == "expand":
        return t.expand(*args[0])
    if kind == "slice":
        axis, start, stop, step = args
        return t[(slice(None),) * axis + (slice(start, stop, step),)]
    assert kind == "select", f"unknown view {kind}"
    return t[(slice(None),) * args[0] + (args[1],)]


def compare(got: Any, expected: Any, entry: dict[str, Any], dtype: str, what: str = "") -> None:
    if isinstance(expected, dict) and "tuple" in expected:
        assert len(got) == len(expected["tuple"])
        for y, e in zip(got, expected["tuple"], strict=True):
            compare(y, e, {k: v for k, v in entry.items() if k != "expected_dtype"}, dtype, what)
        return
    if "expected_dtype" in entry:
        assert dtype_name(got) == entry["expected_dtype"]
    rtol, atol = entry.get("rtol", 0.0), entry.get("atol", 0.0)
    values = to_numpy(got)
    if isinstance(expected, dict) and "probe" in expected:
        assert not expected.keys() - {"shape", "probe", "sum", "abs_sum"}
        assert values.shape == tuple(expected["shape"])
        for index, value in expected["probe"]:
            assert_close(values[tuple(index)], numbers(value), rtol, atol, f"{what} at {index}")
        if "sum" in expected:
            allowed = atol * values.size + rtol * expected["abs_sum"]
            assert abs(float(values.sum(dtype=np.float64)) - expected["sum"]) <= allowed, f"{what} sum"
        return
    kind = "bool" if values.dtype == np.bool_ else "float64" if values.dtype.kind == "f" else "int64"
    assert_close(values, array(expected, "float64" if kind == "int64" and is_float(dtype) else kind), rtol, atol, what)

"""The node tests that onnx generates, for every operator that conformance/onnx_table.py maps, on every device."""

from __future__ import annotations

import collections
import functools
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from helpers import NUMPY, assert_close, is_float, tensor
from not_yet import skip_if_not_yet
from onnx import helper, numpy_helper
from onnx_table import BINARY, TABLE, UNARY, Unmapped

import vkml

KNOWN = {np.dtype(t): name for name, t in NUMPY.items()}


@functools.cache
def cases_by_op() -> dict[str, list[Any]]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    found = collections.defaultdict(list)
    for case in cases:
        if len(case.model.graph.node) == 1:
            found[case.model.graph.node[0].op_type].append(case)
    return dict(found)


def as_array(value: Any) -> np.ndarray:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def name_of(array: np.ndarray) -> str:
    if array.dtype not in KNOWN:
        raise Unmapped(f"dtype {array.dtype}")
    return KNOWN[array.dtype]


def attributes(node: Any) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute} | {"outputs": len(node.output)}


def run_case(case: Any, device: str) -> None:
    node = case.model.graph.node[0]
    given = attributes(node)
    for inputs, outputs in case.data_sets:
        present = iter([as_array(v) for v in inputs])
        arrays = [next(present) if name else None for name in node.input]
        expected = [as_array(v) for v in outputs]
        names = [None if a is None else name_of(a) for a in arrays]
        given["outputs_dtype"] = name_of(expected[0])
        xs = [None if a is None else tensor(a, n, device) for a, n in zip(arrays, names, strict=True)]
        while xs and xs[-1] is None:
            xs.pop()
        results = TABLE[node.op_type](xs, given)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        assert len(results) >= len(expected)
        for y, e in zip(results, expected, strict=False):
            check(y, e, case)


RTOL = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def check(y: vkml.Tensor, expected: np.ndarray, case: Any) -> None:
    name = name_of(expected)
    rtol, atol = (RTOL[name], 1e-6) if is_float(name) else (0.0, 0.0)
    assert_close(y, expected.astype(np.float64) if is_float(name) else expected, rtol, atol, case.name)


def run_all(op: str, device: str) -> tuple[int, collections.Counter[str], list[str]]:
    """Runs an operator's cases: how many ran, why others did not, what failed."""
    ran, reasons, failures = 0, collections.Counter[str](), []
    for case in cases_by_op()[op]:
        try:
            run_case(case, device)
            ran += 1
        except Unmapped as reason:
            reasons[str(reason)] += 1
        except Exception as problem:
            failures.append(f"{case.name}: {type(problem).__name__}: {problem}")
    return ran, reasons, failures


@pytest.mark.parametrize("op", sorted(TABLE))
def test_node(op: str, device: str) -> None:
    skip_if_not_yet({(UNARY | BINARY).get(op, op.lower())})
    ran, reasons, failures = run_all(op, device)
    print(f"{op}: {ran} cases ran;", "; ".join(f"{n} left out: {why}" for why, n in reasons.items()) or "none left out")
    assert not failures, "\n".join(failures)
    assert ran > 0, f"no case of {op} ran: {dict(reasons)}"


def test_unmapped_operators_are_reported() -> None:
    all_cases = cases_by_op()
    unmapped = {op: len(cases) for op, cases in sorted(all_cases.items()) if op not in TABLE}
    print(f"{len(TABLE)} operators mapped with {sum(len(all_cases[op]) for op in TABLE)} cases;")
    print(
        f"{len(unmapped)} not mapped with {sum(unmapped.values())}:",
        " ".join(f"{op} {n}" for op, n in unmapped.items()),
    )
    assert sum(len(all_cases[op]) for op in TABLE) >= 350

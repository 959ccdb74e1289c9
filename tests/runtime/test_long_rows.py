"""Rows read by one workgroup that keeps most of them (slang/rows_wide.slang), and rows cut into parts."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from helpers import assert_same_bits, assert_within, tensor, to_numpy

import vkml
from vkml import _core

SHORTEST = 13 * 4096  # elements, where workgroups have 1024 invocations and 20 KiB
LENGTHS = [SHORTEST, SHORTEST + 4, 65536, 77824, 77828, 131072]
NARROW = os.environ.get("VKML_MIN_SPEC") == "1"  # workgroups too small for the structure


def np_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_log_softmax(x: np.ndarray) -> np.ndarray:
    d = x - x.max(-1, keepdims=True)
    return d - np.log(np.exp(d).sum(-1, keepdims=True))


def np_layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def np_rms_norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


OPERATORS: list[tuple[Callable, Callable]] = [
    (vkml.softmax, np_softmax),
    (vkml.log_softmax, np_log_softmax),
    (vkml.layer_norm, np_layer_norm),
    (vkml.rms_norm, np_rms_norm),
]


def structures_of(op: Callable, *args: object, **kwargs: object) -> list[str]:
    vkml.record_decisions()
    op(*args, **kwargs)
    found = [d["chose"] for d in vkml.decisions() if d["site"] == f"{op.__name__.removeprefix('log_')}.rows"]
    vkml.stop_recording_decisions()
    return found


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("op", "reference"), OPERATORS, ids=lambda f: getattr(f, "__name__", ""))
def test_values(vulkan: str, rng: np.random.Generator, op: Callable, reference: Callable, n: int) -> None:
    held = rng.normal(1, 3, (2, n)).astype(np.float32)
    x = tensor(held, "float32", vulkan)
    assert structures_of(op, x) == ["split" if NARROW else "wide"]
    expected = reference(held.astype(np.float64))
    assert_within(to_numpy(op(x)), expected, 2e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("op", "reference"), OPERATORS[2:], ids=lambda f: getattr(f, "__name__", ""))
def test_parameters(vulkan: str, rng: np.random.Generator, op: Callable, reference: Callable) -> None:
    n = 65540
    held = [rng.normal(1, 3, s).astype(np.float32) for s in ((2, n), (n,), (n,))]
    x, w, b = (tensor(a, "float32", vulkan) for a in held)
    expected = reference(held[0].astype(np.float64)) * held[1]
    assert_within(to_numpy(op(x, weight=w)), expected, 2e-6 * np.abs(expected).max())
    if op is vkml.layer_norm:
        for weight, bias in ((w, b), (None, b)):
            e = (expected if weight is not None else reference(held[0].astype(np.float64))) + held[2]
            assert_within(to_numpy(op(x, weight=weight, bias=bias)), e, 2e-6 * np.abs(e).max())


@pytest.mark.parametrize(("op", "reference"), OPERATORS, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("n", [65536, 135168])
def test_same_bits_whatever_the_batch(
    vulkan: str, rng: np.random.Generator, op: Callable, reference: Callable, n: int
) -> None:
    x = tensor(rng.normal(0, 2, (140, n)).astype(np.float32), "float32", vulkan)
    rows = op(x)
    for i in (0, 77, 139):
        assert_same_bits(op(x[i : i + 1]), rows[i : i + 1])


@pytest.mark.parametrize("structure", ["wide", "looped"])
def test_one_bad_element_anywhere(vulkan: str, rng: np.random.Generator, structure: str) -> None:
    """In every region of a row: what workgroup memory, registers and neither of them keep."""
    n = 131072
    held = rng.normal(0, 4, (7, n)).astype(np.float32)
    for row, column in ((0, 5), (1, 9000), (2, 40000), (3, n - 1)):
        held[row, column] = np.nan
    held[4] = -np.inf
    held[5, 1000:] = -np.inf
    held[6, 100000] = np.inf
    x = tensor(held, "float32", vulkan)
    try:
        _core._force_row_structure(structure)
        y, z, r = (to_numpy(op(x)) for op in (vkml.softmax, vkml.layer_norm, vkml.rms_norm))
    finally:
        _core._force_row_structure("")
    assert np.isnan(y[[0, 1, 2, 3, 4, 6]]).all() and np.isnan(z).all() and np.isnan(r[:4]).all()
    assert_within(y[5], np_softmax(held[5].astype(np.float64)), 1e-6)
    assert np.isnan(r[6, 100000]) and (np.delete(r[6], 100000) == 0).all()


@pytest.mark.parametrize("shape", [(3, 135168), (1, 61440), (2, 315392)])
@pytest.mark.parametrize("op", [vkml.softmax, vkml.log_softmax, vkml.layer_norm, vkml.rms_norm])
def test_every_part_of_a_shared_row_is_written(
    vulkan: str, rng: np.random.Generator, op: Callable, shape: tuple[int, int]
) -> None:
    """Two and four parts, forwards and (half as long) backwards: one driver left the first of two unwritten."""
    x = tensor(rng.normal(0, 2, shape).astype(np.float32), "float32", vulkan, True)
    g = tensor(rng.normal(0, 1, shape).astype(np.float32), "float32", vulkan)
    results = []
    for structure in ("split", "looped"):
        garbage = vkml.full(shape, float("nan"), device=vulkan)
        del garbage  # the next result of its size lies there
        try:
            _core._force_row_structure(structure)
            y = op(x)
            results.append([y, *vkml.grad([y], [x], [g])])
        finally:
            _core._force_row_structure("")
    for a, b in zip(*results, strict=True):
        assert np.isfinite(to_numpy(a)).all()
        assert_same_bits(a, b)

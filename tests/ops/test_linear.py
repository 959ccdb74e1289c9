"""linear, addmm, bmm, dot and outer: thin faces of the product, with its bound."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import FLOATS, assert_within, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases

import vkml
from vkml import _core


def linear_bound(eps: float, x: np.ndarray, w: np.ndarray, *bias: np.ndarray) -> np.ndarray:
    k = w.shape[1]
    out = np.abs(x) @ np.abs(w).T
    total = out + np.abs(bias[0]) if bias else out
    return (k / 32 + np.log2(max(k, 1)) + 33) * eps * total + 1e-300


def np_linear(x: np.ndarray, w: np.ndarray, *bias: np.ndarray) -> np.ndarray:
    return x @ w.T + (bias[0] if bias else 0.0)


TestLinear = op_cases(
    "linear",
    np_linear,
    torch="linear",
    shapes=[
        ((5, 7), (3, 7)),
        ((5, 7), (3, 7), (3,)),
        ((7,), (3, 7), (3,)),
        ((2, 4, 65), (33, 65), (33,)),
        ((0, 7), (3, 7), (3,)),
        ((2, 0), (3, 0), (3,)),
        ((40, 70), (1, 70), (1,)),
    ],
    dtypes=FLOATS,
    tolerance=Tolerance(bound=linear_bound),
    second=True,
    errors=[
        (
            lambda d: vkml.linear(vkml.zeros((2, 3), device=d), vkml.zeros((4, 5), device=d)),
            "ShapeError",
            r"linear: weight: expected 3 columns, got shape \(4, 5\)",
        ),
        (
            lambda d: vkml.linear(vkml.zeros((2, 3), device=d), vkml.zeros((3,), device=d)),
            "ShapeError",
            r"linear: weight: expected rank 2, got \(3,\)",
        ),
        (
            lambda d: vkml.linear(
                vkml.zeros((2, 3), device=d), vkml.zeros((4, 3), device=d), vkml.zeros((3,), device=d)
            ),
            "ShapeError",
            r"linear: bias: expected shape \(4,\), got \(3,\)",
        ),
        (
            lambda d: vkml.linear(vkml.zeros((2, 3), device=d), vkml.zeros((4, 3), dtype="float64", device=d)),
            "DTypeError",
            "linear: weight: expected float32, got float64",
        ),
        (
            lambda d: vkml.linear(
                vkml.zeros((2, 3), dtype="int64", device=d), vkml.zeros((4, 3), dtype="int64", device=d)
            ),
            "DTypeError",
            "linear: expected a floating-point tensor, got int64",
        ),
    ],
    bench=[bench((64, 784), (256, 784), (256,), flops=2.0 * 64 * 784 * 256)],
)


def np_addmm(c: np.ndarray, a: np.ndarray, b: np.ndarray, beta=1, alpha=1) -> np.ndarray:
    return (beta * c if beta else 0.0) + alpha * (a @ b)


TestAddmm = op_cases(
    "addmm",
    np_addmm,
    torch="addmm",
    shapes=[((3, 5), (3, 4), (4, 5)), ((5,), (3, 4), (4, 5)), ((2, 1), (2, 0), (0, 3))],
    dtypes=["float32", "float64"],
    tolerance=Tolerance(rel=2e-6, abs=2e-5),
    second=True,
    beta=[1, 0, 0.5],
    alpha=[1, -2.5],
    errors=[
        (
            lambda d: vkml.addmm(
                vkml.zeros((4,), device=d), vkml.zeros((2, 3), device=d), vkml.zeros((3, 5), device=d)
            ),
            "ShapeError",
            "addmm",
        )
    ],
)
TestBmm = op_cases(
    "bmm",
    np.matmul,
    torch="bmm",
    shapes=[((2, 3, 4), (2, 4, 5)), ((0, 3, 4), (0, 4, 5))],
    dtypes=FLOATS,
    tolerance=Tolerance(rel=1e-5, abs=1e-5),
)
TestDot = op_cases(
    "dot",
    np.dot,
    torch="dot",
    shapes=[((5,), (5,)), ((0,), (0,)), ((300,), (300,))],
    dtypes=FLOATS,
    tolerance=Tolerance(bound=lambda eps, a, b: 50 * eps * (np.abs(a) @ np.abs(b)) + 1e-300),
)
TestOuter = op_cases(
    "outer",
    np.outer,
    torch="outer",
    shapes=[((5,), (7,)), ((0,), (3,))],
    dtypes=FLOATS,
    tolerance=Tolerance(rel=2.0**-23),
)


def test_no_columns_leave_the_bias(device: str) -> None:
    bias = tensor(np.array([1.0, 2, 3]), device=device)
    out = vkml.linear(vkml.zeros((2, 0), device=device), vkml.zeros((3, 0), device=device), bias)
    assert out.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_beta_zero_ignores_nan(device: str) -> None:
    bad = tensor(np.full((2, 2), np.nan), device=device)
    got = vkml.addmm(bad, vkml.ones((2, 3), device=device), vkml.ones((3, 2), device=device), beta=0)
    assert got.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("name", ["gemv", "gemm_naive", "gemm_tiled", "gemm_db", "gemm_reg", "gemm_split_k_reduce"])
def test_every_pipeline_adds_the_bias(vulkan: str, name: str) -> None:
    rng = np.random.default_rng(5)
    x, w, bias = rng.standard_normal((37, 200)), rng.standard_normal((41, 200)), rng.standard_normal(82)
    x, w, bias = (a.astype(np.float32).astype(np.float64) for a in (x, w, bias))
    _core._force_gemm(name)
    try:
        stepped = tensor(bias, device=vulkan)[::2]
        got = vkml.linear(tensor(x, device=vulkan), tensor(w, device=vulkan), stepped)
    finally:
        _core._force_gemm("")
    assert_within(to_numpy(got), x @ w.T + bias[::2], linear_bound(2.0**-23, x, w, bias[::2]))

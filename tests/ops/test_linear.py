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


ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "silu"]


def composed(x: vkml.Tensor, w: vkml.Tensor, bias: vkml.Tensor | None, name: str) -> vkml.Tensor:
    z = vkml.linear(x, w, bias)
    return vkml.gelu(z, approximate="tanh") if name == "gelu_tanh" else getattr(vkml, name)(z)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [((5, 7), 3), ((7,), 3), ((2, 40, 300), 70), ((130, 64), 1), ((0, 7), 3), ((2, 0), 3)], ids=str
)
def test_activations(device: str, name: str, dtype: str, shape: tuple[tuple[int, ...], int]) -> None:
    size, out = shape
    rng = np.random.default_rng(3)
    x, w = tensor(rng.standard_normal(size), dtype, device), tensor(rng.standard_normal((out, size[-1])), dtype, device)
    bias = tensor(rng.standard_normal(out), dtype, device)
    for b in (None, bias):
        got, apart = vkml.linear(x, w, b, activation=name), composed(x, w, b, name)
        assert got.dtype == apart.dtype and got.shape == apart.shape
        # One rounding less in 16 bits.
        ulp = {"float64": 2.0**-50, "float32": 2.0**-21, "float16": 2.0**-8, "bfloat16": 2.0**-5}[dtype]
        expected = to_numpy(apart)
        assert_within(to_numpy(got), expected, ulp * (np.abs(expected) + 1) + 1e-30)


# Building a pipeline with gelu takes seconds on a CPU: one activation for each, all for two.
EACH = [(pipeline, "relu") for pipeline in _core._gemm_names()]
EACH += [(p, name) for p in ("gemm_reg", "gemm_small") for name in ACTIVATIONS[1:]]


@pytest.mark.parametrize(("pipeline", "name"), EACH)
def test_every_pipeline_has_activations(vulkan: str, pipeline: str, name: str) -> None:
    rng = np.random.default_rng(5)
    x, w, bias = rng.standard_normal((70, 600)) / 25, rng.standard_normal((67, 600)), rng.standard_normal(67)
    x, w, bias = (tensor(a, device=vulkan) for a in (x, w, bias))
    _core._force_gemm(pipeline)
    try:
        got, z = vkml.linear(x, w, bias, activation=name), vkml.linear(x, w, bias)
    finally:
        _core._force_gemm("")
    after = vkml.gelu(z, approximate="tanh") if name == "gelu_tanh" else getattr(vkml, name)(z)
    assert_within(to_numpy(got), to_numpy(after), 2.0**-21 * np.abs(to_numpy(after)) + 1e-30, pipeline)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_activations(device: str, name: str) -> None:
    rng = np.random.default_rng(4)
    arrays = rng.standard_normal((4, 6)), rng.standard_normal((5, 6)), rng.standard_normal(5)
    g = tensor(rng.standard_normal((4, 5)), "float32", device)
    results = []
    for op in (lambda *a: vkml.linear(*a, activation=name), lambda *a: composed(*a, name)):
        leaves = [tensor(a, "float32", device).requires_grad_() for a in arrays]
        y = op(*leaves)
        first = vkml.grad([y], leaves, [g], create_graph=True)
        total = (first[0] * first[0]).sum() + (first[1] * first[1]).sum()
        results.append([y, *first, *vkml.grad([total], leaves[:2])])
    for one, other in zip(*results, strict=True):
        expected = to_numpy(other)
        assert_within(to_numpy(one), expected, 1e-5 * (np.abs(expected) + 1), name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_not_an_extra_pass(vulkan: str, name: str) -> None:
    x, w = tensor(np.random.default_rng(0).standard_normal((40, 40)), device=vulkan), vkml.ones((40, 40), device=vulkan)
    vkml.synchronize(vulkan)
    counts = []
    for call in (lambda: vkml.linear(x, w), lambda: vkml.linear(x, w, activation=name)):
        with vkml.profiler.profile(vulkan) as profile:
            call()
        counts.append(len(profile.records))
    assert counts[0] == counts[1]


def test_unknown_activation(device: str) -> None:
    with pytest.raises(
        vkml.ShapeError, match="linear: activation: expected none, relu, gelu, gelu_tanh or silu, got 'tanh'"
    ):
        vkml.linear(vkml.ones((2, 3), device=device), vkml.ones((4, 3), device=device), activation="tanh")


def test_no_columns_leave_the_bias(device: str) -> None:
    bias = tensor(np.array([1.0, 2, 3]), device=device)
    out = vkml.linear(vkml.zeros((2, 0), device=device), vkml.zeros((3, 0), device=device), bias)
    assert out.tolist() == [[1, 2, 3], [1, 2, 3]]


def test_beta_zero_ignores_nan(device: str) -> None:
    bad = tensor(np.full((2, 2), np.nan), device=device)
    got = vkml.addmm(bad, vkml.ones((2, 3), device=device), vkml.ones((3, 2), device=device), beta=0)
    assert got.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize("name", ["gemv", "gemm_naive", "gemm_tiled", "gemm_db", "gemm_reg", "gemm_split_k"])
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

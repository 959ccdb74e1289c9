"""cumsum: values, layouts, lengths, repeatability, errors and gradients on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import (
    ALL,
    EPS,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    assert_same_bits,
    assert_within,
    laid_out,
    rounded,
    spacing,
    tensor,
    to_numpy,
)
from op_cases import bench, bench_cases

import vkml

bench_cases(
    "cumsum", "cumsum", lambda x, dim: x.cumsum(dim), "cumsum",
    # A sum of random signs stays far below that of its magnitudes, about 1.5 each.
    bench=[
        bench((8192, 8192), dim=1, scale=1.5 * 8192),
        bench((8192, 8192), dim=0, scale=1.5 * 8192),
        bench((8192, 8192), dim=1, dtype="bfloat16"),
    ],
)  # fmt: skip


def values_of(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.7
    if dtype in INTEGERS:
        return np.asarray(rng.integers(0 if dtype == "uint8" else -100, 100, shape))
    return np.asarray(rng.standard_normal(shape))


def check(t: vkml.Tensor, x: np.ndarray, dim: int, dtype: str) -> None:
    got = vkml.cumsum(t, dim)
    assert str(got.dtype) == (dtype if dtype in FLOATS else "int64")
    expected = np.cumsum(x if dtype in FLOATS else x.astype(np.int64), axis=dim)
    if dtype not in FLOATS:
        return assert_within(to_numpy(got), expected, 0)
    # Runs of 32, then of 1024, then of chunks: some dozens of roundings of the sum of magnitudes, never thousands.
    eps = EPS["float64" if dtype == "float64" else "float32"] / 2
    allowed = 96 * eps * np.cumsum(np.abs(x), axis=dim)
    assert_within(
        to_numpy(got),
        expected,
        allowed + (spacing(expected, dtype) if dtype in ("float16", "bfloat16") else 0),
        f"{dim}",
    )


@pytest.mark.parametrize("dtype", ALL)
def test_values(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [(1,), (7,), (3, 5), (2, 3, 4), (3, 1100), (1100, 40), (2, 300, 33)]:
        x = rounded(values_of(shape, dtype, rng), dtype)
        for dim in range(-len(shape), len(shape)):
            check(tensor(x, dtype, device), x, dim, dtype)


@pytest.mark.parametrize("shape", [(1_000_003,), (3, 200_000), (200_000, 3), (20_000, 65)])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_long(device: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    x = rounded(values_of(shape, dtype, rng), dtype)
    t = tensor(x, dtype, device)
    for dim in range(len(shape)):
        check(t, x, dim, dtype)
        assert_same_bits(vkml.cumsum(t, dim), vkml.cumsum(t, dim))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device: str, layout: str, rng: np.random.Generator) -> None:
    for shape in [(9,), (4, 6), (3, 8, 5), (2, 3, 40, 33), (2, 3, 2, 2, 3)]:
        t, x = laid_out(layout, values_of(shape, "float32", rng), "float32", device)
        for dim in range(len(shape)):
            check(t, x, dim, "float32")


def test_figures(device: str) -> None:
    ones = vkml.full((3000,), 1.0, dtype="float16", device=device)
    assert to_numpy(vkml.cumsum(ones, 0))[-1] == 3000
    got = to_numpy(vkml.cumsum(tensor(np.array([1, math.nan, 2]), "float32", device), 0))
    assert got[0] == 1 and np.isnan(got[1:]).all()
    got = to_numpy(vkml.cumsum(tensor(np.array([1, math.inf, 2, -math.inf, 1]), "float32", device), 0))
    assert got[:3].tolist() == [1, math.inf, math.inf] and np.isnan(got[3:]).all()
    assert vkml.cumsum(tensor(np.array(3.0), "float32", device), 0).item() == 3
    assert vkml.cumsum(vkml.full((0, 3), 1.0, device=device), 0).shape == (0, 3)
    assert vkml.cumsum(vkml.full((2, 0), 1.0, device=device), 0).shape == (2, 0)
    assert tensor(np.arange(4.0), "float32", device).cumsum(dim=0).tolist() == [0, 1, 3, 6]


def test_error(device: str) -> None:
    with pytest.raises(vkml.IndexError_, match=r"cumsum: expected dim in \[-2, 1\], got 2"):
        vkml.cumsum(vkml.full((2, 3), 1.0, device=device), 2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradient_is_the_sum_from_the_other_end(device: str, dtype: str, rng: np.random.Generator) -> None:
    t = tensor(np.ones(3), dtype, device, requires_grad=True)
    vkml.sum(vkml.cumsum(t, 0)).backward()
    assert to_numpy(t.grad).tolist() == [3, 2, 1]
    for shape, dim in (((4, 5), 0), ((4, 5), 1), ((2, 1100), 1), ((1100, 40), 0)):
        w = rounded(rng.standard_normal(shape), dtype)
        t = tensor(rng.standard_normal(shape), dtype, device, requires_grad=True)
        vkml.sum(vkml.cumsum(t, dim) * tensor(w, dtype, device)).backward()
        expected = np.flip(np.cumsum(np.flip(w, dim), dim), dim)
        magnitude = np.flip(np.cumsum(np.flip(np.abs(w), dim), dim), dim)
        eps = EPS["float64" if dtype == "float64" else "float32"]
        assert_within(to_numpy(t.grad), expected, 96 * eps * magnitude + spacing(expected, dtype))


def test_second_derivative() -> None:
    t = tensor(np.array([1.0, 2.0, 3.0]), "float64", "cpu", requires_grad=True)
    y = vkml.cumsum(t, 0)
    (g,) = vkml.grad(vkml.sum(y * y), t, create_graph=True)
    (h,) = vkml.grad(g[0], t)  # g[0] = 2 (y0 + y1 + y2)
    assert to_numpy(h).tolist() == [6, 4, 2]

"""sort, argsort, topk, unique: stable, NaN largest, lower index first."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, FLOATS, LAYOUTS, assert_same_bits, laid_out, rounded, tensor, to_numpy

import vkml

SHAPES = [((), 0), ((1,), 0), ((0, 3), 1), ((3, 0), 1), ((7,), -1), ((4, 129), 1), ((129, 3), 0), ((3, 40, 5), 1)]


def order(x: np.ndarray, dim: int, descending: bool) -> np.ndarray:
    """NumPy's stable order; in descending order NaN comes first and equal values keep theirs."""
    if not descending:
        return np.argsort(x, dim, kind="stable")
    x = np.moveaxis(x, dim, -1)
    out = np.empty(x.shape, np.int64)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].tolist()
        out[place] = sorted(range(len(row)), key=lambda i: (not _nan(row[i]), 0 if _nan(row[i]) else -row[i], i))
    return np.moveaxis(out, -1, dim)


def _nan(v: float) -> bool:
    return v != v


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Many repeats; floats hold NaN of both signs, infinities and both zeros too."""
    values = rng.integers(0 if dtype in ("uint8", "bool") else -4, 5, shape)
    if dtype not in FLOATS:
        return rounded(values, dtype)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0])
    return np.where(rng.random(shape) < 0.2, rng.choice(special, shape), values + rng.integers(0, 2, shape) * 0.5)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ALL)
def test_sort(device: str, rng: np.random.Generator, dtype: str, descending: bool) -> None:
    for shape, dim in SHAPES:
        x = numbers(rng, shape, dtype)
        values, indices = vkml.sort(tensor(x, dtype, device), dim, descending)
        expected = order(x, dim, descending) if shape else np.zeros((), np.int64)
        np.testing.assert_array_equal(indices.numpy(), expected, err_msg=f"{shape}")
        np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(x, expected, dim) if shape else x)
        np.testing.assert_array_equal(vkml.argsort(tensor(x, dtype, device), dim, descending).numpy(), expected)


@pytest.mark.parametrize("length", [2, 3, 127, 128, 255, 1023, 1024, 1025, 2048, 2049, 5000, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "float16"])
def test_every_length(device: str, rng: np.random.Generator, length: int, dtype: str) -> None:
    x = numbers(rng, (2, length), dtype) if length < 70_000 else numbers(rng, (1, length), dtype)
    wide = dtype == "int64"
    if wide:
        x = rng.integers(-(2**63), 2**63 - 1, x.shape)
    values, indices = vkml.sort(tensor(x, dtype, device))
    np.testing.assert_array_equal(indices.numpy(), np.argsort(x, -1, kind="stable"))
    np.testing.assert_array_equal(to_numpy(values), np.sort(x, -1))


def test_many_long_rows_on_an_inner_axis(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 1500, 4)).astype(np.float32)
    _, indices = vkml.sort(tensor(x, device=device), 1, True)
    np.testing.assert_array_equal(indices.numpy(), np.argsort(-x, 1, kind="stable"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(device: str, rng: np.random.Generator, layout: str) -> None:
    for shape in [(6, 7), (3, 4, 5), (2, 1100)]:
        t, x = laid_out(layout, rng.integers(-9, 9, shape), "float32", device)
        for dim in range(len(shape)):
            np.testing.assert_array_equal(vkml.argsort(t, dim).numpy(), np.argsort(x, dim, kind="stable"))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8"])
def test_topk(device: str, rng: np.random.Generator, dtype: str, largest: bool) -> None:
    x = numbers(rng, (5, 50, 3), dtype)
    for k in (0, 1, 7, 50):
        values, indices = vkml.topk(tensor(x, dtype, device), k, 1, largest)
        expected = order(x, 1, largest)[:, :k]
        np.testing.assert_array_equal(indices.numpy(), expected)
        np.testing.assert_array_equal(to_numpy(values), np.take_along_axis(x, expected, 1))


def test_gradient_goes_back_where_the_values_came_from(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 9)).astype(np.float32)
    g = rng.standard_normal((4, 9)).astype(np.float32)
    t = tensor(x, device=device, requires_grad=True)
    vkml.sort(t, -1)[0].backward(tensor(g, device=device))
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.argsort(x, -1), g, -1)
    np.testing.assert_array_equal(t.grad.numpy(), expected)
    t.zero_grad()
    vkml.topk(t, 2)[0].backward(tensor(g[:, :2], device=device))
    expected = np.zeros_like(x)
    np.put_along_axis(expected, np.argsort(-x, -1)[:, :2], g[:, :2], -1)
    np.testing.assert_array_equal(t.grad.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_unique(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = rounded(rng.integers(0, 9, (13, 17)), dtype)
    values, inverse, counts = vkml.unique(tensor(x, dtype, device), return_inverse=True, return_counts=True)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(to_numpy(values), expected[0])
    np.testing.assert_array_equal(inverse.numpy(), expected[1].reshape(x.shape))
    np.testing.assert_array_equal(counts.numpy(), expected[2])
    assert vkml.unique(tensor([2.0, np.nan, 2.0, np.nan, -0.0, 0.0], device=device)).numpy().shape == (4,)


def test_devices_agree(vulkan: str, rng: np.random.Generator) -> None:
    for dtype in ALL:
        x = numbers(rng, (3, 1300), dtype)
        (a, i), (b, j) = (vkml.sort(tensor(x, dtype, d), -1, True) for d in ("cpu", vulkan))
        assert_same_bits(a, b, dtype)
        assert_same_bits(i, j, dtype)


def test_the_choice_is_logged(vulkan: str) -> None:
    vkml.record_decisions()
    vkml.argsort(vkml.zeros((2, 10), device=vulkan))
    vkml.argsort(vkml.zeros((2, 2000), device=vulkan))
    chosen = [d["chose"] if isinstance(d, dict) else d.chose for d in vkml.decisions()][-2:]
    vkml.stop_recording_decisions()
    assert chosen == ["rows", "radix"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: vkml.topk(vkml.zeros((3,), device=d), 4), "ShapeError", "topk: k: expected 0 to 3, got 4"),
        (lambda d: vkml.topk(vkml.zeros((3,), device=d), -1), "ShapeError", "topk: k: expected 0 to 3, got -1"),
        (lambda d: vkml.sort(vkml.zeros((3,), device=d), 1), "IndexError_", r"sort: expected dim in \[-1, 0\], got 1"),
    ],
)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(device)  # type: ignore[operator]

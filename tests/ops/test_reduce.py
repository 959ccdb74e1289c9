"""Reductions: values, axes, dtypes, layouts, repeatability and errors on every device."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers import (
    ALL,
    EPS,
    FLOATS,
    INTEGERS,
    LAYOUTS,
    NUMPY,
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

# A sum of random signs stays far below that of its magnitudes, about 1.5 each.
bench_cases(
    "sum", "sum", lambda x, dim: x.sum(dim), "sum",
    bench=[
        *(bench((8192, 8192), dim=dim, scale=1.5 * 8192) for dim in (0, 1)),
        *(bench((64, 512, 2048), dim=dim, scale=1.5 * 2048) for dim in (0, 1, 2)),
        bench((1 << 26,), dim=0, scale=1.5 * (1 << 26)),
        *(bench((8192, 8192), dim=dim, dtype="bfloat16", scale=1.5 * 8192) for dim in (0, 1)),
    ],
)  # fmt: skip
for extreme in ("argmax", "amax"):
    bench_cases(
        extreme, extreme, lambda x, dim, op=extreme: getattr(np, op)(x, dim), extreme,
        bench=[*(bench((8192, 8192), dim=dim) for dim in (0, 1)), bench((8192, 8192), dim=1, dtype="bfloat16")],
    )  # fmt: skip
bench_cases(
    "var", lambda x, dim: vkml.var(x, dim), lambda x, dim: x.var(dim, ddof=1), lambda torch, x, dim: torch.var(x, dim),
    bench=[bench((8192, 8192), dim=dim) for dim in (0, 1)],
)  # fmt: skip

SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4), (1, 129), (129, 1), (4, 1030), (1030, 4), (5, 257, 3), (2, 1, 3, 1, 2)]
# One long row, few long rows, few long columns, many of each: the cuts of structure.cpp.
LONG = [((1 << 20) + 1,), (2, 150_000), (150_000, 3), (150_000, 32), (700, 900), (64, 5, 2048), (3, 4096, 65)]

SMALL = [(7,), (3, 5), (4, 1030), (1030, 4), (2, 3, 4)]


def shapes_for(dtype: str) -> list[tuple[int, ...]]:
    """All in f32; elsewhere one of each structure, as every new pipeline costs the software device its compiler."""
    return SHAPES if dtype == "float32" else SMALL


def axis_sets(rank: int) -> list[tuple[int, ...] | int | None]:
    axes = range(rank)
    sets = [s for n in range(1, rank + 1) for s in itertools.combinations(axes, n)]
    return [None, *sets]


def values_of(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.7
    if dtype in INTEGERS:
        return np.asarray(rng.integers(0 if dtype == "uint8" else -100, 100, shape))
    return np.asarray(rng.standard_normal(shape))


def np_axis(dim: object) -> object:
    return None if dim == () else tuple(dim) if isinstance(dim, list) else dim


def sum_bound(x: np.ndarray, dim: object, keepdim: bool, dtype: str, steps: float = 24.0) -> np.ndarray:
    """Pairwise sums with short chains: `steps` roundings of the sum of magnitudes, and one rounding to the dtype."""
    eps = EPS["float64" if dtype == "float64" else "float32"] / 2
    bound = steps * eps * np.abs(x).sum(axis=np_axis(dim), keepdims=keepdim)
    total = x.sum(axis=np_axis(dim), keepdims=keepdim)
    return bound + (spacing(total, dtype) if dtype in ("float16", "bfloat16") else 0)


@pytest.mark.parametrize("dtype", ALL)
def test_sum_every_axis_set(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [*shapes_for(dtype), (0,), (2, 0, 3), (3, 0)]:
        x = rounded(values_of(shape, dtype, rng), dtype)
        t = tensor(x, dtype, device)
        for dim, keepdim in itertools.product(axis_sets(len(shape)), (False, True)):
            got = vkml.sum(t, dim, keepdim=keepdim)
            expected = np.sum(x if dtype in FLOATS else x.astype(np.int64), axis=dim, keepdims=keepdim)
            assert str(got.dtype) == (dtype if dtype in FLOATS else "int64")
            allowed = sum_bound(x, dim, keepdim, dtype) if dtype in FLOATS else 0
            assert_within(to_numpy(got), expected, allowed, f"{shape} {dim} {keepdim}")


@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_sum_long(device: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    x = rounded(values_of(shape, dtype, rng), dtype)
    if dtype == "float16":
        x = rounded(x / 16, dtype)
    t = tensor(x, dtype, device)
    for dim in axis_sets(len(shape)):
        expected = np.sum(x if dtype in FLOATS else x.astype(np.int64), axis=dim)
        allowed = sum_bound(x, dim, False, dtype) if dtype in FLOATS else 0
        assert_within(to_numpy(vkml.sum(t, dim)), expected, allowed, f"{shape} {dim}")


def test_sum_agrees_with_fsum(device: str, rng: np.random.Generator) -> None:
    x = rng.random((1 << 20) + 1).astype(np.float32)
    exact = math.fsum(x.tolist())
    # Every term positive: a chain would be off by hundreds of ulp.
    assert abs(vkml.sum(tensor(x, "float32", device)).item() - exact) <= 8 * spacing(np.array(exact), "float32")


def test_sum_of_halves_is_float(device: str) -> None:
    ones = vkml.full((70000,), 1, dtype="float16", device=device)
    assert vkml.sum(ones[:3000]).item() == 3000
    assert vkml.sum(ones).item() == math.inf
    assert vkml.mean(vkml.full((70000,), 2, dtype="float16", device=device)).item() == 2
    assert vkml.sum(vkml.full((300,), 1, dtype="uint8", device=device)).item() == 300


def test_sum_starts_from_plus_zero(device: str) -> None:
    got = vkml.sum(vkml.full((5,), -0.0, dtype="float32", device=device)).numpy()
    assert not np.signbit(got)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mean(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [*shapes_for(dtype), (700, 900)]:
        x = rounded(values_of(shape, dtype, rng) + 1, dtype)
        for dim in axis_sets(len(shape)):
            n = x.size / max(1, np.sum(x, axis=dim).size)
            allowed = sum_bound(x, dim, False, "float64" if dtype == "float64" else "float32") / n
            expected = np.mean(x, axis=dim)
            assert_within(
                to_numpy(vkml.mean(tensor(x, dtype, device), dim)), expected, allowed + 2 * spacing(expected, dtype)
            )


def test_mean_of_nothing_is_nan(device: str) -> None:
    assert math.isnan(vkml.mean(vkml.full((0,), 1.0, device=device)).item())
    assert np.isnan(to_numpy(vkml.mean(vkml.full((0, 3), 1.0, device=device), 0))).all()
    assert to_numpy(vkml.sum(vkml.full((0, 3), 1.0, device=device), 0)).tolist() == [0, 0, 0]
    assert to_numpy(vkml.prod(vkml.full((0, 3), 1.0, device=device), 0)).tolist() == [1, 1, 1]
    assert vkml.sum(vkml.full((0, 3), 1.0, device=device), 1).shape == (0,)


@pytest.mark.parametrize("dtype", ALL)
def test_prod(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in shapes_for(dtype):
        x = (
            rounded(1 + 0.05 * rng.standard_normal(shape), dtype)
            if dtype in FLOATS
            else values_of(shape, dtype, rng).astype(NUMPY[dtype])
        )
        for dim in axis_sets(len(shape)):
            got = vkml.prod(tensor(x, dtype, device), dim)
            with np.errstate(over="ignore"):
                expected = np.prod(x if dtype in FLOATS else x.astype(np.int64), axis=dim)
            n = x.size / max(1, np.asarray(expected).size)
            eps = EPS["float64" if dtype == "float64" else "float32"]
            allowed = np.abs(expected) * eps * n + spacing(expected, dtype) if dtype in FLOATS else 0
            assert str(got.dtype) == (dtype if dtype in FLOATS else "int64")
            assert_within(to_numpy(got), expected, allowed, f"{shape} {dim}")


@pytest.mark.parametrize("dtype", ALL)
def test_extrema_and_positions(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [*shapes_for(dtype), (300, 400)]:
        x = values_of(shape, dtype, rng).astype(np.float64)
        x = rounded(np.round(x * 4) / 4 if dtype in FLOATS else x, dtype)  # ties
        t = tensor(x, dtype, device)
        for dim in axis_sets(len(shape)):
            assert_within(to_numpy(vkml.amax(t, dim)), np.max(x, axis=dim), 0, f"amax {shape} {dim}")
            assert_within(to_numpy(vkml.amin(t, dim)), np.min(x, axis=dim), 0, f"amin {shape} {dim}")
        for dim in range(len(shape)):
            for op, values, positions in ((vkml.max, np.max, np.argmax), (vkml.min, np.min, np.argmin)):
                for keepdim in (False, True):
                    got, index = op(t, dim, keepdim=keepdim)
                    assert str(got.dtype) == dtype and str(index.dtype) == "int64"
                    assert_within(to_numpy(got), values(x, axis=dim, keepdims=keepdim), 0)
                    assert_within(to_numpy(index), positions(x, axis=dim, keepdims=keepdim), 0)
        if dtype != "bool":
            assert vkml.argmax(t).item() == np.argmax(x) and vkml.argmin(t).item() == np.argmin(x)
            for dim in range(len(shape)):
                assert_within(to_numpy(vkml.argmax(t, dim)), np.argmax(x, axis=dim), 0)
                assert_within(to_numpy(t.argmin(dim, keepdim=True)), np.argmin(x, axis=dim, keepdims=True), 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [4, 1000, 70_000])
def test_nan_wins(device: str, dtype: str, size: int) -> None:
    x = np.zeros(size)
    x[1], x[2], x[3] = math.nan, math.inf, math.nan
    if size > 10:
        x[-2] = -math.inf
    rows, columns = (
        tensor(np.stack([x, np.zeros(size)]), dtype, device),
        tensor(np.stack([x, np.zeros(size)], 1), dtype, device),
    )
    for t, dim in ((rows, 1), (columns, 0)):
        for op in (vkml.amax, vkml.amin):
            got = to_numpy(op(t, dim))
            assert math.isnan(got[0]) and got[1] == 0
        for op in (vkml.argmax, vkml.argmin):
            assert to_numpy(op(t, dim)).tolist() == [1, 0]
        for op in (vkml.max, vkml.min):
            values, index = op(t, dim)
            assert math.isnan(to_numpy(values)[0]) and to_numpy(index).tolist() == [1, 0]
    assert vkml.argmax(tensor(np.array([1, math.nan, 3, math.nan]), dtype, device)).item() == 1


def test_infinite_extrema(device: str) -> None:
    low, high = tensor(np.full(5, -math.inf), "float32", device), tensor(np.full(5, math.inf), "float32", device)
    assert vkml.amax(low).item() == -math.inf and vkml.argmax(low).item() == 0
    assert vkml.amin(high).item() == math.inf and vkml.argmin(high).item() == 0
    assert vkml.argmax(tensor(np.array([-0.0, 0.0]), "float32", device)).item() == 0  # equal, so the first
    least = tensor(np.array([-(2**63), -(2**63)]), "int64", device)
    assert vkml.amax(least).item() == -(2**63) and vkml.argmax(least).item() == 0
    assert vkml.amax(vkml.full((3,), 2**53 + 1, device=device)).item() == 2**53 + 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_var_and_std(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [(7,), (3, 5), (2, 3, 4), (4, 1030), (1030, 4), (5, 257, 3), (700, 900), (2, 150_000)]:
        x = rounded(rng.standard_normal(shape) + 3, dtype)
        t = tensor(x, dtype, device)
        for dim, correction in itertools.product(axis_sets(len(shape)), (0, 1, 1.5)):
            n = x.size / np.sum(x, axis=dim).size
            expected = np.var(x, axis=dim) * n / (n - correction)
            eps = EPS["float64" if dtype == "float64" else "float32"]
            rtol = 32 * eps
            # Parts are joined by the difference of their means, each known to an ulp.
            allowed = rtol * expected + 4 * eps * np.abs(x).max() * np.sqrt(expected) + spacing(expected, dtype)
            assert_within(to_numpy(vkml.var(t, dim, correction=correction)), expected, allowed, f"{shape} {dim}")
            root = np.sqrt(expected)
            assert_within(
                to_numpy(t.std(dim, correction=correction)),
                root,
                rtol * root + 4 * eps * np.abs(x).max() + spacing(root, dtype),
            )


def test_var_figures(device: str) -> None:
    def var(values: list[float], **kwargs: float) -> float:
        return vkml.var(tensor(np.array(values), "float32", device), **kwargs).item()

    assert abs(var([1, 2, 3, 4]) - 5 / 3) < 1e-6
    assert var([1, 2, 3, 4], correction=0) == 1.25
    assert abs(var([1e4, 1e4 + 1, 1e4 + 2, 1e4 + 3]) - 5 / 3) < 1e-6
    assert math.isnan(var([1.0])) and var([1.0], correction=0) == 0
    many = np.tile(np.arange(4.0), 1000) + 1e4
    assert abs(var(many.tolist(), correction=0) - 1.25) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_logsumexp(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [*shapes_for(dtype), (2, 150_000)]:
        x = rounded(5 * rng.standard_normal(shape), dtype)
        for dim in axis_sets(len(shape)):
            peak = np.max(x, axis=dim, keepdims=True)
            expected = np.log(np.sum(np.exp(x - peak), axis=dim)) + np.max(x, axis=dim)
            eps = EPS["float64" if dtype == "float64" else "float32"]
            allowed = 32 * eps * (1 + np.abs(np.max(x, axis=dim))) + spacing(expected, dtype)
            assert_within(to_numpy(vkml.logsumexp(tensor(x, dtype, device), dim)), expected, allowed, f"{shape} {dim}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logsumexp_edges(device: str, dtype: str) -> None:
    rows = [
        [1e4, 0, -1e4],
        [-math.inf, 0, 0],
        [-math.inf] * 3,
        [math.inf, 0, 1],
        [math.nan, 0, math.inf],
        [math.inf, -math.inf, math.inf],
    ]
    expected = np.array([1e4, math.log(2), -math.inf, math.inf, math.nan, math.inf])
    for t, dim in ((tensor(np.array(rows), dtype, device), 1), (tensor(np.array(rows).T, dtype, device), 0)):
        assert_within(to_numpy(vkml.logsumexp(t, dim)), expected, 1e-6)
    assert to_numpy(vkml.logsumexp(vkml.full((0, 2), 1.0, dtype=dtype, device=device), 0)).tolist() == [-math.inf] * 2


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "bool"])
def test_layouts(device: str, layout: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [(9,), (4, 6), (3, 8, 5), (2, 3, 64, 40), (2, 2, 2, 2, 2, 2, 2)]:
        t, x = laid_out(layout, values_of(shape, dtype, rng), dtype, device)
        sets = axis_sets(len(shape)) if len(shape) < 5 else [(0, 2, 4, 6), (1, 3, 5), None]
        for dim in sets:
            expected = np.sum(x if dtype in FLOATS else x.astype(np.int64), axis=dim)
            allowed = sum_bound(x, dim, False, dtype) if dtype in FLOATS else 0
            assert_within(to_numpy(vkml.sum(t, dim)), expected, allowed, f"{shape} {dim}")
            assert_within(to_numpy(vkml.amax(t, dim)), np.max(x, axis=dim), 0)
        if dtype != "bool":
            assert vkml.argmin(t).item() == np.argmin(x)


@pytest.mark.parametrize("offset", [1, 2, 3, 5])
def test_unaligned_views(device: str, offset: int, rng: np.random.Generator) -> None:
    for dtype in ("float32", "float16", "uint8"):
        x = rounded(values_of((9000,), dtype, rng), dtype)
        t = tensor(x, dtype, device)[offset:]
        expected = np.sum(x[offset:] if dtype in FLOATS else x[offset:].astype(np.int64))
        allowed = sum_bound(x, None, False, dtype) if dtype in FLOATS else 0
        assert_within(to_numpy(vkml.sum(t)), expected, allowed)


def run_all(t: vkml.Tensor) -> list[vkml.Tensor]:
    out = []
    for dim in (None, 0, 1):
        out += [f(t, dim) for f in (vkml.sum, vkml.mean, vkml.prod, vkml.var, vkml.logsumexp, vkml.amax)]
    return out


@pytest.mark.parametrize("shape", [(700, 900), (3, 200_000), (200_000, 3)])
def test_repeats_bitwise(device: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    t = tensor(rng.standard_normal(shape), "float32", device)
    for a, b in zip(run_all(t), run_all(t), strict=True):
        assert_same_bits(a, b)


THREADS = """
import hashlib, numpy, vkml
rng = numpy.random.default_rng(3)
digest = hashlib.sha256()
for shape in ((700, 900), (3, 200_000), (200_000, 3), (1_000_001,)):
    t = vkml.tensor(rng.standard_normal(shape).astype(numpy.float32))
    for dim in (None, *range(len(shape))):
        for f in (vkml.sum, vkml.mean, vkml.var, vkml.logsumexp):
            digest.update(f(t, dim).numpy().tobytes())
print(digest.hexdigest())
"""


def test_results_do_not_depend_on_threads() -> None:
    digests = set()
    for threads in ("1", "2", "7"):
        env = {**os.environ, "VKML_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", THREADS], env=env, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


def test_dim_spellings(device: str) -> None:
    t = tensor(np.arange(24.0).reshape(2, 3, 4), "float32", device)
    assert vkml.sum(t, ()).shape == () and vkml.sum(t, None).shape == ()
    assert vkml.sum(t, [0, -1]).shape == (3,) and t.sum(-1).shape == (2, 3)
    assert t.sum(dim=(0, 2), keepdim=True).shape == (1, 3, 1)
    assert vkml.sum(input=t, dim=1, keepdim=True).shape == (2, 1, 4)
    assert vkml.argmax(t, keepdim=True).shape == (1, 1, 1)
    assert vkml.sum(tensor(np.array(3.0), "float32", device), 0).item() == 3
    assert vkml.argmax(tensor(np.array(3.0), "float32", device), -1).item() == 0


@pytest.mark.parametrize("dtype", ALL)
def test_all_and_any(device: str, dtype: str, rng: np.random.Generator) -> None:
    for shape in [(), (7,), (3, 40), (0,), (0, 3)]:
        x = rounded(rng.random(shape) < 0.9, dtype)
        for dim in axis_sets(len(shape)):
            assert_within(to_numpy(vkml.all(tensor(x, dtype, device), dim)), np.all(x, axis=dim), 0)
            assert_within(
                to_numpy(vkml.any(tensor(1 - x if dtype != "bool" else ~x, dtype, device), dim)),
                np.any(x == 0, axis=dim),
                0,
            )
    if dtype in FLOATS:
        assert vkml.any(tensor(np.array([0, math.nan]), dtype, device)).item() is True


@pytest.mark.parametrize("p", [2, 1, math.inf, -math.inf, 0, 3, 0.5])
def test_norm(device: str, p: float, rng: np.random.Generator) -> None:
    for dtype in ("float32", "float16"):
        x = rounded(rng.standard_normal((5, 33)), dtype)
        for dim in axis_sets(2):
            flat = x.ravel() if dim in (None, (0, 1)) else x
            expected = np.linalg.norm(flat, ord=p, axis=0 if flat.ndim == 1 else dim[0])
            assert_within(
                to_numpy(vkml.norm(tensor(x, dtype, device), p, dim)),
                expected,
                2e-5 * expected + spacing(expected, dtype),
            )
    assert vkml.norm(vkml.full((70000,), 2.0, dtype="float16", device=device)).item() == pytest.approx(529, abs=0.5)


ERRORS = [
    (lambda t: vkml.sum(t, 2), "IndexError_", r"sum: expected dim in \[-2, 1\], got 2"),
    (lambda t: vkml.sum(t, (0, -2)), "ShapeError", r"sum: expected distinct axes, got \(0, -2\)"),
    (lambda t: vkml.mean(t.to("int64")), "DTypeError", "mean: expected a floating-point tensor, got int64"),
    (lambda t: vkml.var(t.to("int32")), "DTypeError", "var: expected a floating-point tensor, got int32"),
    (lambda t: vkml.logsumexp(t.to("bool")), "DTypeError", "logsumexp: expected a floating-point tensor, got bool"),
    (lambda t: vkml.argmax(t.to("bool")), "DTypeError", "argmax: expected a tensor of numbers, got bool"),
    (
        lambda t: vkml.amax(t[:0]),
        "ShapeError",
        r"amax: expected at least one element to choose from, got shape \(0, 3\)",
    ),
    (lambda t: vkml.max(t[:0]), "ShapeError", "expected at least one element"),
    (lambda t: vkml.min(t[:0], 0), "ShapeError", "min: expected at least one element"),
    (lambda t: vkml.argmin(t[:, :0], 1), "ShapeError", "argmin: expected at least one element"),
    (lambda t: vkml.max(t, 5), "IndexError_", r"max: expected dim in \[-2, 1\], got 5"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(tensor(np.ones((2, 3)), "float32", device))  # type: ignore[operator]


def test_empty_choice_along_another_axis(device: str) -> None:
    t = vkml.full((0, 5), 1.0, device=device)
    assert vkml.amax(t, 1).shape == (0,) and vkml.argmax(t, 1).shape == (0,)


def exact_sum(x: np.ndarray) -> np.float32:
    """Runs of 32 one after the other, then adjacent pairs level by level, an odd last one moving up."""
    sums = []
    for i in range(0, len(x), 32):
        s = np.float32(0)
        for v in x[i : i + 32]:
            s = np.float32(s + v)
        sums.append(s)
    while len(sums) > 1:
        sums = [np.float32(sums[i] + sums[i + 1]) if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
    return sums[0] if sums else np.float32(0)


@pytest.fixture
def exact_mode() -> object:
    before = vkml.get_float32_matmul_precision()
    vkml.set_float32_matmul_precision("exact")
    yield
    vkml.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("exact_mode")
def test_exact_sum_has_the_stated_order(device: str, rng: np.random.Generator) -> None:
    for n in (0, 1, 31, 32, 33, 100, 1000, 8192, 8193, 3 * 8192 + 77, 300_000):
        x = rng.random(n).astype(np.float32)
        t = tensor(x, "float32", device)
        expected = exact_sum(x)
        assert vkml.sum(t).numpy().tobytes() == expected.tobytes(), n
        if n:
            assert vkml.mean(t).numpy().tobytes() == np.float32(expected / np.float32(n)).tobytes(), n
    x = rng.random((5, 70, 3)).astype(np.float32)
    t = tensor(x, "float32", device)
    for dim, moved in ((1, np.moveaxis(x, 1, -1)), ((0, 2), np.transpose(x, (1, 0, 2)).reshape(70, 15))):
        expected = np.array([exact_sum(row) for row in moved.reshape(-1, moved.shape[-1])], np.float32)
        assert vkml.sum(t, dim).numpy().tobytes() == expected.tobytes()
    transposed = tensor(np.ascontiguousarray(x.T), "float32", device).permute(2, 1, 0)
    assert vkml.sum(transposed).numpy().tobytes() == exact_sum(x.ravel()).tobytes()  # row-major, whatever the strides


@pytest.mark.usefixtures("exact_mode")
def test_exact_sum_known_bits(device: str) -> None:
    x = vkml.rand((1000,), 7, 0, device=device)
    assert vkml.sum(x).numpy().view(np.uint32).item() == 0x43EF3DC6


def test_structures_are_reported(device: str) -> None:
    if not hasattr(vkml, "record_decisions"):
        pytest.skip("no decision log yet")
    vkml.record_decisions()
    try:
        vkml.sum(vkml.full((40, 64), 1.0, device=device), 1)
        vkml.sum(vkml.full((40, 64), 1.0, device=device), 0)
        vkml.sum(vkml.full((40, 64), 1.0, device=device)[:, ::2], 1)
        vkml.sum(vkml.full((1 << 20,), 1.0, device=device))
        chosen = [
            d["chose"] if isinstance(d, dict) else d.chose for d in vkml.decisions() if "reduce.structure" in str(d)
        ]
    finally:
        vkml.stop_recording_decisions()
    assert chosen == ["rows", "columns", "strided", "rows" if device == "cpu" else "split"]

"""f32 matmul from three bf16 parts: needs a device with bf16 cooperative matrices. On any device,
tests/cpp/cooperative_test.cpp has the same kernels with emulated matrices."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from helpers import assert_same_bits, assert_within, rounded, tensor, to_numpy

import vkml
from vkml import _core

PARTS = ["gemm_parts", "gemm_parts_small", "gemm_parts_tiny", "gemm_parts_few"]
# M, K, N: whole tiles, ragged edges, few rows, slices that K does not fill, and sides below a tile.
SIZES = [(128, 64, 256), (200, 96, 136), (131, 70, 267), (65, 33, 129), (1, 520, 300), (5, 129, 64), (63, 1025, 31)]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def bound(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    k = a.shape[-1]
    return (k / 32 + np.log2(max(k, 1)) + 32) * 2.0**-23 * (np.abs(a) @ np.abs(b)) + 2.0**-126


def chosen(call: Callable[[], object]) -> str:
    vkml.record_decisions(16)
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == "matmul.kernel"][-1]["chose"]


@pytest.fixture
def force(vulkan: str) -> Iterator[Callable[[str], None]]:
    """Sets the pipeline; skips where the device cannot run it."""
    _core._force_gemm("gemm_parts_small")
    x = tensor(draw(64, 64), device=vulkan)
    name = chosen(lambda: x @ x)
    _core._force_gemm("")
    if name != "gemm_parts_small":
        pytest.skip("the device has no bf16 cooperative matrices")
    yield _core._force_gemm
    _core._force_gemm("")


@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", PARTS)
def test_every_layout_and_edge(
    vulkan: str, force: Callable[[str], None], name: str, size: tuple[int, int, int], turned: str
) -> None:
    m, k, n = size
    a, b = rounded(draw(m, k), "float32"), rounded(draw(k, n, seed=1), "float32")
    x = tensor(a.T, device=vulkan).transpose(0, 1) if turned[0] == "t" else tensor(a, device=vulkan)
    y = tensor(b.T, device=vulkan).transpose(0, 1) if turned[1] == "t" else tensor(b, device=vulkan)
    force(name)
    got = x @ y
    assert chosen(lambda: x @ y) == name
    assert_within(to_numpy(got), a @ b, bound(a, b), f"{name} {size} {turned}")
    assert_same_bits(x @ y, got, "two runs")


def test_one_answer_from_every_tile(vulkan: str, force: Callable[[str], None]) -> None:
    for m, k, n in SIZES:
        x, y = tensor(draw(m, k), device=vulkan), tensor(draw(k, n, seed=1), device=vulkan)
        results = []
        for name in PARTS:
            force(name)
            results.append(x @ y)
        for name, result in zip(PARTS[1:], results[1:], strict=True):
            assert_same_bits(result, results[0], f"{name} {m} {k} {n}")


@pytest.mark.parametrize("along", [False, True])
def test_rows_do_not_depend_on_the_batch_around(vulkan: str, force: Callable[[str], None], along: bool) -> None:
    m, k, n = 300, 520, 1040
    x, w = tensor(draw(m, k), device=vulkan), tensor(draw(k, n, seed=1), device=vulkan)
    if along:
        w = vkml.contiguous(w.transpose(0, 1)).transpose(0, 1)
    if not chosen(lambda: x @ w).startswith("gemm_parts"):
        pytest.skip("the device's matrices are not fast enough for parts")
    whole = x @ w
    for rows in (slice(0, 1), slice(7, 8), slice(0, 5), slice(3, 40), slice(17, 100), slice(100, 250)):
        part = vkml.contiguous(x[rows])
        assert chosen(lambda part=part: part @ w).startswith("gemm_parts")
        assert_same_bits(part @ w, vkml.contiguous(whole[rows]), str(rows))
        assert_same_bits(x[rows] @ w, vkml.contiguous(whole[rows]), f"{rows} where they lie")
    batch = x.reshape(30, 10, k)
    assert_same_bits(vkml.contiguous((batch @ w)[3]), batch[3] @ w, "a member")


@pytest.mark.parametrize("name", PARTS)
def test_the_ends_of_the_range(vulkan: str, force: Callable[[str], None], name: str) -> None:
    """Numbers times the identity are themselves, also in rows that hold both ends of the range."""
    size = 192
    exponents = np.arange(size * size) % 227 - 126
    exponents[: 3 * size] += 26  # up to 2^126: added again, unscaled
    a = np.ldexp(1 + np.abs(draw(size, size)) / 8 % 1, exponents.reshape(size, size)).astype(np.float32)
    force(name)
    eye = tensor(np.eye(size), device=vulkan)
    for b in (eye, eye.transpose(0, 1)):
        got = to_numpy(tensor(a, device=vulkan) @ b)
        np.testing.assert_array_equal(got.astype(np.float32), a)
    # Products to both ends: sums above 2^79 leave the scaled range.
    rows = np.ldexp(1.0, np.arange(size) % 9 * 24 - 110)[:, None] * draw(size, size)
    columns = np.ldexp(1.0, np.arange(size) % 5 * 8 + 8)[None, :] * draw(size, size, seed=1)
    rows, columns = rounded(rows, "float32"), rounded(columns, "float32")
    got = to_numpy(tensor(rows, device=vulkan) @ tensor(columns, device=vulkan))
    assert_within(got, rows @ columns, bound(rows, columns), "range")


@pytest.mark.parametrize("name", PARTS)
def test_infinities_stay_in_their_lines(vulkan: str, force: Callable[[str], None], name: str) -> None:
    a, b = draw(150, 80), draw(80, 170, seed=1)
    a[3, 5], a[7, 0], b[9, 11], b[30, 20], a[12, 30] = np.inf, np.nan, -np.inf, np.inf, 0
    a[13], a[13, 4] = 0, 3e38  # beyond the scaled range; some products leave the range itself
    a, b = rounded(a, "float32"), rounded(b, "float32")
    bias = rounded(draw(170, seed=2), "float32")
    force(name)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = (a @ b + bias).astype(np.float32)
        limit = bound(np.where(np.isfinite(a), a, 0), np.where(np.isfinite(b), b, 0)) + 1e-5
    got = to_numpy(vkml.linear(tensor(a, device=vulkan), tensor(b.T, device=vulkan), tensor(bias, device=vulkan)))
    odd = ~np.isfinite(expected)
    np.testing.assert_array_equal(got[odd], expected[odd].astype(got.dtype))
    assert np.all(np.abs(got - expected)[~odd] <= limit[~odd])


def test_the_choice_is_by_n_and_k(vulkan: str, force: Callable[[str], None]) -> None:
    x = tensor(draw(300, 2048), device=vulkan)
    if os.environ.get("VKML_GEMM_PARTS") == "OFF":
        pytest.skip("VKML_GEMM_PARTS is OFF")
    names = {n: chosen(lambda n=n: x @ tensor(draw(2048, n), device=vulkan)) for n in (64, 1000, 1024, 1500)}
    assert not names[64].startswith("gemm_parts") and not names[1000].startswith("gemm_parts")
    if names[1024].startswith("gemm_parts"):
        assert names[1500].startswith("gemm_parts")
    vkml.set_float32_matmul_precision("exact")
    try:
        assert not chosen(lambda: x @ tensor(draw(2048, 1024), device=vulkan)).startswith("gemm_parts")
    finally:
        vkml.set_float32_matmul_precision("highest")


def test_a_process_may_begin_with_a_capture(vulkan: str, force: Callable[[str], None]) -> None:
    """What matrices are worth is measured at the first product, outside of the recording."""
    code = """
import numpy as np
import vkml
x = vkml.tensor(np.random.default_rng(0).standard_normal((300, 2048)).astype(np.float32), device="vulkan:0")
w = vkml.tensor(np.random.default_rng(1).standard_normal((2048, 1024)).astype(np.float32), device="vulkan:0")
y = vkml.zeros(300, 1024, device="vulkan:0")
step = vkml.capture(lambda: y.copy_(x @ w), device="vulkan:0")
first = y.numpy().copy()
y.zero_()
step.replay()
assert np.array_equal(first, y.numpy()) and np.array_equal(first, (x @ w).numpy())
print(len(step))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 8, "the measurement is in the recording"

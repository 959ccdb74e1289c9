"""dropout: the mask of rand, by logical index, made again in backward."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import FLOATS, LAYOUTS, assert_same_bits, laid_out, rounded, tensor, to_numpy
from op_cases import bench, bench_cases

import vkml


def expected(x: np.ndarray, p: float, seed: int, offset: int, dtype: str) -> np.ndarray:
    keep = to_numpy(vkml.rand(x.shape, seed, offset)) >= p
    scale = np.float64(np.float32(1 / (1 - p))) if p < 1 else 0.0
    wide = np.float64 if dtype == "float64" else np.float32
    with np.errstate(all="ignore"):
        return np.where(keep, rounded((x.astype(wide) * wide(scale)), dtype), 0.0)


bench_cases(
    "dropout", lambda x: vkml.dropout(x, 0.3, seed=7), lambda x: expected(x, 0.3, 7, 0, "float32"),
    lambda torch, x: torch.nn.functional.dropout(x, 0.3),
    bench=[
        bench((4096, 4096), random=True),
        bench((4096, 4096), dtype="bfloat16", random=True),
        bench((4096, 4096), backward=True, random=True),
    ],
)  # fmt: skip


def test_known_answers(device: str) -> None:
    ones = vkml.ones((8,), device=device)
    assert vkml.dropout(ones, 0.5, 123, 5).tolist() == [2, 2, 0, 0, 0, 2, 2, 2]
    got = vkml.dropout(ones, 0.3, 123, 5).numpy()
    np.testing.assert_array_equal(got, np.where(np.arange(8) == 4, np.float32(0), np.float32(1.4285715)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 33), (2, 3, 4, 5, 6)])
def test_values(device: str, rng: np.random.Generator, dtype: str, p: float, shape: tuple[int, ...]) -> None:
    x = rounded(rng.standard_normal(shape), dtype)
    got = vkml.dropout(tensor(x, dtype, device), p, 11, 3)
    np.testing.assert_array_equal(to_numpy(got), expected(x, p, 11, 3, dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layout_follows_the_logical_index(device: str, rng: np.random.Generator, layout: str, dtype: str) -> None:
    for shape in [(9, 5), (2, 3, 4, 5), (1, 2, 2, 3, 2, 2, 2, 3)]:
        t, x = laid_out(layout, rng.standard_normal(shape), dtype, device)
        np.testing.assert_array_equal(to_numpy(vkml.dropout(t, 0.4, 1, 2)), expected(x, 0.4, 1, 2, dtype))


def test_what_is_dropped_is_zero_whatever_it_was(device: str) -> None:
    x = tensor([np.nan, np.inf, -np.inf, 1.0] * 16, device=device)
    keep = to_numpy(vkml.rand((64,), 4, 4)) >= 0.5
    got = to_numpy(vkml.dropout(x, 0.5, 4, 4))
    assert (got[~keep] == 0).all() and not np.isfinite(got[keep][np.arange(64)[keep] % 4 < 3]).any()


def test_nothing_to_do_gives_the_input(device: str) -> None:
    x = tensor([np.nan, np.inf, 2.0], device=device)
    for got in (vkml.dropout(x, 0.0, 1), vkml.dropout(x, 0.7, 1, training=False)):
        assert_same_bits(got, x)


def test_counter_carries_into_its_second_word(device: str, rng: np.random.Generator) -> None:
    n = 64
    first = 2**32 - n // 2
    x = vkml.ones((n,), device=device)
    got = to_numpy(vkml._core._dropout_slice(x, 0.5, 3, 9, first)) > 0
    from test_random import words

    np.testing.assert_array_equal(got, [(words(3, 9, first + i)[0] >> 8) >= 2**23 for i in range(n)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradient_has_the_same_mask(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = tensor(rng.standard_normal((6, 7)), dtype, device, requires_grad=True)
    g = rng.standard_normal((6, 7))
    y = vkml.dropout(x.permute(1, 0), 0.3, 5, 6)
    y.backward(tensor(g.T, dtype, device))
    np.testing.assert_array_equal(to_numpy(x.grad), expected(rounded(g, dtype).T, 0.3, 5, 6, dtype).T)


def test_gradient_of_p_1_is_zero(device: str) -> None:
    x = vkml.ones((4,), device=device).requires_grad_()
    vkml.dropout(x, 1.0, 1).backward(vkml.ones((4,), device=device))
    assert x.grad.tolist() == [0, 0, 0, 0]


def test_default_generator(device: str) -> None:
    x = vkml.ones((100,), device=device)
    vkml.manual_seed(8)
    first, second = vkml.dropout(x, 0.5), vkml.dropout(x, 0.5)
    assert_same_bits(first, vkml.dropout(x, 0.5, 8, 0))
    assert_same_bits(second, vkml.dropout(x, 0.5, 8, 1))


def test_both_devices_same_bits(vulkan: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((1000, 7))
    for dtype in FLOATS:
        a, b = (vkml.dropout(tensor(x, dtype, d), 0.37, 77, 1) for d in ("cpu", vulkan))
        assert_same_bits(a, b, dtype)


@pytest.mark.parametrize("p", [1.5, -0.1, float("nan")])
def test_bad_p(device: str, p: float) -> None:
    with pytest.raises(vkml.ShapeError, match=r"dropout: p: expected a number in \[0, 1\], got "):
        vkml.dropout(vkml.ones((2,), device=device), p, 1)


def test_integers_are_refused(device: str) -> None:
    with pytest.raises(vkml.DTypeError, match="dropout: expected a floating-point tensor, got int64"):
        vkml.dropout(vkml.arange(3, device=device), 0.5, 1)

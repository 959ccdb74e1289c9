"""fill: full of every dtype, and filling through strides."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, assert_same_bits, rounded, tensor, to_numpy
from op_cases import bench, bench_cases

import vkml

bench_cases(
    "full_like", lambda x: vkml.full_like(x, 1.5), lambda x: np.full_like(x, 1.5),
    lambda torch, x: torch.full_like(x, 1.5),
    bench=[bench((8192, 8192), bytes=4.0 * 8192**2), bench((8192, 8192), dtype="bfloat16", bytes=2.0 * 8192**2)],
)  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 0, 2), (5, 129), (70001,)], ids=str)
def test_full(device: str, dtype: str, shape: tuple[int, ...]) -> None:
    for value in (0, 1, 3, 0.1) if dtype.startswith(("float", "bfloat")) else (0, 1):
        x = vkml.full(shape, value, dtype=dtype, device=device)
        assert x.shape == shape and str(x.dtype).removeprefix("vkml.") == dtype and str(x.device) == device
        assert np.array_equal(to_numpy(x), np.full(shape, rounded(np.asarray(float(value)), dtype)))
        assert_same_bits(x, vkml.full(shape, value, dtype=dtype, device="cpu").to(device))


def test_extreme_values(device: str) -> None:
    for dtype, value in (("int64", -(2**63)), ("int64", 2**63 - 1), ("uint8", 255), ("int8", -128)):
        assert vkml.full((3,), value, dtype=dtype, device=device).tolist() == [value] * 3
    for value in (np.inf, -np.inf, np.nan, 1e-45):
        assert np.array_equal(
            vkml.full((2,), value, device=device).numpy(), np.full(2, value, np.float32), equal_nan=True
        )


@pytest.mark.parametrize("dtype", ALL)
def test_filling_through_strides(device: str, dtype: str) -> None:
    held = np.zeros((4, 6))
    x = tensor(held, dtype, device)
    x[1:, 1::2] = 1
    held[1:, 1::2] = 1
    assert np.array_equal(to_numpy(x), rounded(held, dtype))


def test_natural_dtypes_and_likes(device: str) -> None:
    for value, name in ((True, "bool"), (2, "int64"), (2.5, "float32")):
        x = vkml.full((2,), value, device=device)
        assert str(x.dtype).removeprefix("vkml.") == name
        like = vkml.ones_like(x)
        assert like.dtype == x.dtype and like.device == x.device and like.tolist() == [1, 1]
        assert vkml.zeros_like(x).tolist() == [0, 0]

"""arange, linspace, eye: torch's dtype rules, exact integers, floats rounded once from float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from helpers import NUMPY, assert_same_bits, dtype_name, to_numpy

import vkml


@pytest.mark.parametrize(
    "args", [(5,), (0,), (2, 9), (2, 9, 3), (9, 2, -3), (2**53 + 1, 2**53 + 4), (-(2**63), 2**63 - 1, 2**62), (True, 4)]
)
def test_integers(device: str, args: tuple[int, ...]) -> None:
    got = vkml.arange(*args, device=device)
    assert dtype_name(got) == "int64"
    assert got.tolist() == list(range(*args))


@pytest.mark.parametrize(
    "args", [(0.0, 1.0, 0.1), (1.5,), (5.0, -5.0, -0.7), (0, 1, 0.25), (1e6, 1e6 + 3.0), (2.0, 2.0)]
)
def test_floats(device: str, args: tuple[float, ...]) -> None:
    got = vkml.arange(*args, device=device)
    assert dtype_name(got) == "float32"
    start, stop, step = (0.0, args[0], 1.0) if len(args) == 1 else (*args, 1.0)[:3]
    n = int(np.ceil((stop - start) / step))
    np.testing.assert_array_equal(got.numpy(), (start + np.arange(n) * np.float64(step)).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"])
def test_dtypes(device: str, dtype: str) -> None:
    got = vkml.arange(3, 100, 7, dtype=dtype, device=device)
    assert dtype_name(got) == dtype
    np.testing.assert_array_equal(got.numpy(), np.arange(3, 100, 7).astype(NUMPY[dtype]))


def test_bfloat16_and_wrap(device: str) -> None:
    got = to_numpy(vkml.arange(0, 1000, 3, dtype="bfloat16", device=device))
    np.testing.assert_array_equal(
        got, np.arange(0, 1000, 3).astype(np.float32).astype(ml_dtypes.bfloat16).astype(float)
    )
    assert vkml.arange(254, 259, dtype="uint8", device=device).tolist() == [254, 255, 0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("args", [(0, 1, 5), (0, 1, 1), (3, 3, 4), (-2.5, 7.25, 1000), (5, -5, 11), (0, 1, 0)])
def test_linspace(device: str, dtype: str, args: tuple[float, float, int]) -> None:
    got = to_numpy(vkml.linspace(*args, dtype=dtype, device=device))
    np.testing.assert_allclose(got, np.linspace(*args), rtol=1e-6 if dtype == "float32" else 1e-14, atol=1e-12)
    if args[2] > 1:
        assert got[0] == args[0] and got[-1] == args[1]


def test_linspace_integers_truncate(device: str) -> None:
    assert vkml.linspace(0, 9, 4, dtype="int32", device=device).tolist() == [0, 3, 6, 9]
    assert vkml.linspace(-3, 3, 5, dtype="int64", device=device).tolist() == [-3, -1, 0, 1, 3]


@pytest.mark.parametrize("shape", [(3,), (2, 5), (5, 2), (0, 3), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "bool"])
def test_eye(device: str, shape: tuple[int, ...], dtype: str) -> None:
    got = vkml.eye(*shape, dtype=dtype, device=device)
    np.testing.assert_array_equal(to_numpy(got), np.eye(*shape).astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_devices_agree(vulkan: str, dtype: str) -> None:
    assert_same_bits(*(vkml.arange(-3.0, 50.0, 0.0371, dtype=dtype, device=d) for d in ("cpu", vulkan)))
    assert_same_bits(*(vkml.linspace(-1, 2, 999, dtype=dtype, device=d) for d in ("cpu", vulkan)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda d: vkml.arange(0, 5, 0, device=d), "arange: step: expected a number other than 0"),
        (lambda d: vkml.arange(0, 5, -1, device=d), "arange: step: expected a step from 0.* towards 5"),
        (lambda d: vkml.arange(0, float("inf"), device=d), "arange: expected finite numbers"),
        (lambda d: vkml.linspace(0, 1, -1, device=d), "linspace: steps: expected a count >= 0, got -1"),
        (lambda d: vkml.eye(-1, device=d), "eye: expected sizes >= 0"),
    ],
)
def test_errors(device: str, call: object, text: str) -> None:
    with pytest.raises(vkml.ShapeError, match=text):
        call(device)  # type: ignore[operator]

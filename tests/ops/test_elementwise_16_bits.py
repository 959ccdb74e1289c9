"""Elementwise operators on every value of the 16-bit floats. Failures name the operator, its input and both results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import rounded, spacing, tensor, to_numpy
from test_elementwise import sigmoid

import vkml


def every_16_bit_value(dtype: str) -> np.ndarray:
    """All 65536 bit patterns, as the float32 numbers they stand for."""
    patterns = np.arange(65536, dtype=np.uint16)
    return (
        (patterns.astype(np.uint32) << 16).view(np.float32)
        if dtype == "bfloat16"
        else patterns.view(np.float16).astype(np.float32)
    )


# A reference, and how many units in the last place of the 16-bit type it may be off.
SIXTEEN_BITS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "neg": (np.negative, 0), "abs": (np.abs, 0), "relu": (lambda x: np.maximum(x, 0), 0), "floor": (np.floor, 0),
    "ceil": (np.ceil, 0), "trunc": (np.trunc, 0), "round": (np.rint, 0),
    "sqrt": (np.sqrt, 1), "rsqrt": (lambda x: 1 / np.sqrt(x), 1), "reciprocal": (lambda x: 1 / x, 1),
    "exp": (np.exp, 1), "log": (np.log, 1), "log2": (np.log2, 1), "sigmoid": (sigmoid, 1), "tanh": (np.tanh, 1),
    "square": (np.square, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_value(dtype: str, device: str) -> None:
    """The f32 result rounded once; a subnormal f32 result may be 0."""
    x = every_16_bit_value(dtype)
    with np.errstate(invalid="ignore"):  # NaNs have payloads
        t = tensor(x, dtype, device)
    wrong = []
    for name, (reference, ulps) in SIXTEEN_BITS.items():
        with np.errstate(all="ignore"):
            expected = rounded(reference(x.astype(np.float64)), dtype)
            got = to_numpy(getattr(vkml, name)(t))
            close = np.abs(got - expected) <= ulps * spacing(expected, dtype) + 2.0**-126
        fine = close | (got == expected) | (np.isnan(got) & np.isnan(expected))
        wrong += [
            f"{name}({x[i]!r} = {i:#06x}): expected {expected[i]!r}, got {got[i]!r}, one of {np.sum(~fine)}"
            for i in np.flatnonzero(~fine)[:4]
        ]
    assert not wrong, "\n".join([f"{dtype} on {device}", *wrong])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_value_compares(dtype: str, device: str) -> None:
    """With 0 and with the smallest number above it; a device may say that it reads subnormal f32 numbers as 0."""
    x = every_16_bit_value(dtype)
    others = [0.0, float(x[1])]
    if device != "cpu" and vkml.device_info(device)["denorm_preserve_float32"] not in (True, "yes"):
        x = x[(x == 0) | np.isnan(x) | (np.abs(x) >= 2.0**-126)]
        others = [y for y in others if y == 0 or y >= 2.0**-126]
    with np.errstate(invalid="ignore"):  # NaNs have payloads
        t = tensor(x, dtype, device)
    wrong = []
    for name, compare in {"equal": np.equal, "less": np.less, "greater_equal": np.greater_equal}.items():
        for other in others:
            expected = compare(x, np.float32(other))
            got = to_numpy(getattr(vkml, name)(t, other))
            wrong += [
                f"{name}({x[i]!r}, {other!r}): expected {expected[i]}, got {got[i]}, one of {np.sum(got != expected)}"
                for i in np.flatnonzero(got != expected)[:4]
            ]
    assert not wrong, "\n".join([f"{dtype} on {device}", *wrong])

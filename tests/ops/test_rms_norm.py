"""rms_norm: values, gradients, edge rows, structures, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, assert_within, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases

import vkml
from vkml import _core

GRADIENTS = [(5,), (2, 3, 4), (3, 7), (0, 5), (3, 0)]  # one element leaves a gradient of 0 but for eps: all rounding
PLAIN = [(5,), (0, 5), (3, 0), (2, 3, 4), *((3, n) for n in (1, 2, 7, 31, 33, 63, 65, 127, 300, 1025, 4099))]
AFFINE = [((4, n), (n,)) for n in (1, 5, 8, 33, 300)] + [((70, 8), (8,)), ((2, 3, 8), (8,))]


def np_rms_norm(x: np.ndarray, *weight: np.ndarray, normalized_axes: int = 1, eps: float = 1e-5) -> np.ndarray:
    if x.size == 0:
        return x
    axes = tuple(range(x.ndim - normalized_axes, x.ndim))
    y = x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)
    return y * weight[0] if weight else y


def weighted(x: Any, weight: Any, **kwargs: Any) -> Any:
    return vkml.rms_norm(x, weight=weight, **kwargs)


def torch_plain(torch: Any, x: Any, normalized_axes: int = 1) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[x.ndim - normalized_axes :], eps=1e-5)


ERRORS = [
    (
        lambda d: vkml.rms_norm(vkml.zeros(2, 3, device=d), 3),
        "ShapeError",
        "^rms_norm: normalized_axes: expected 1 to 2, got 3$",
    ),
    (
        lambda d: vkml.rms_norm(vkml.zeros(2, 4, device=d), weight=vkml.zeros(5, device=d)),
        "ShapeError",
        r"^rms_norm: weight: expected shape \(4,\), got \(5,\)$",
    ),
    (
        lambda d: vkml.rms_norm(vkml.tensor([1, 2], device=d)),
        "DTypeError",
        "^rms_norm: expected a floating-point tensor, got int64$",
    ),
]
TestPlain = op_cases(
    "rms_norm",
    np_rms_norm,
    torch=torch_plain,
    shapes=PLAIN,
    tolerance=Tolerance(row=1e-6),
    second=True,
    batched=True,
    grad_tolerance=3e-5,
    grad_floor=1.0,  # a row of one or two elements has a gradient of nearly 0, the difference of terms of this size
    grad_shapes=GRADIENTS,
    errors=ERRORS,
    bench=[
        bench((32768, 1024)),
        bench((8192, 8192)),
        bench((1024, 65536)),
        bench((128, 262144)),
        bench((8192, 8192), dtype="bfloat16"),
        *(bench(s, backward=True) for s in ((32768, 1024), (8192, 8192), (1024, 65536), (128, 262144))),
    ],
)
TestTwoAxes = op_cases(
    "rms_norm",
    np_rms_norm,
    name="rms_norm over two axes",
    torch=torch_plain,
    shapes=[(2, 3, 4), (3, 5, 65)],
    tolerance=Tolerance(row=1e-6),
    grad_tolerance=3e-5,
    normalized_axes=2,
)
TestWeighted = op_cases(
    weighted,
    np_rms_norm,
    name="rms_norm with weight",
    shapes=AFFINE,
    tolerance=Tolerance(row=2e-6),
    second=True,
    grad_tolerance=3e-5,
    grad_shapes=AFFINE[1:3],
)


def test_edges(device: str) -> None:
    assert (to_numpy(vkml.rms_norm(tensor(np.zeros((2, 5)), "float32", device))) == 0).all()
    for value in (600.0, 60000.0):
        assert (to_numpy(vkml.rms_norm(tensor(np.full((1, 4096), value), "float16", device))) == 1).all()
    y = to_numpy(vkml.rms_norm(tensor([[1, np.inf, 2], [1, np.nan, 2], [3, 3, 3]], "float32", device)))
    assert y[0, 0] == 0 and np.isnan(y[0, 1]) and y[0, 2] == 0
    assert np.isnan(y[1]).all()
    assert_close(y[2], np.ones(3), rtol=1e-6)


@pytest.mark.parametrize("structure", ["resident", "wide", "split", "looped"])
@pytest.mark.parametrize("n", [300, 1024, 40000, 61440])
def test_each_structure(vulkan: str, rng: np.random.Generator, structure: str, n: int) -> None:
    held = [
        to_numpy(tensor(a, "float32"))
        for a in (rng.normal(1, 2, (2, n)), rng.normal(0, 1, n), rng.normal(0, 1, (2, n)))
    ]
    x, w = (tensor(a, "float32", vulkan, True) for a in held[:2])
    try:
        _core._force_row_structure(structure)
        y = vkml.rms_norm(x, weight=w)
        y.backward(tensor(held[2], "float32", vulkan))
        gradient = to_numpy(x.grad)
    finally:
        _core._force_row_structure("")
    assert_within(to_numpy(y), np_rms_norm(*held[:2]), 5e-6)
    r = 1 / np.sqrt((held[0] ** 2).mean(-1, keepdims=True) + 1e-5)
    hat, gh = held[0] * r, held[2] * held[1]
    assert_within(gradient, r * (gh - hat * (gh * hat).mean(-1, keepdims=True)), 5e-6)

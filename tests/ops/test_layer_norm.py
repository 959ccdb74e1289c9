"""layer_norm: values, gradients of input, weight and bias, cancellation, edge rows, structures, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, assert_same_bits, assert_within, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases

import vkml
from vkml import _core

LENGTHS = [1, 2, 7, 31, 33, 63, 65, 127, 300, 1025, 4099]
# Two elements or fewer leave a gradient of 0 but for eps: all rounding.
GRADIENTS = [(5,), (2, 3, 4), (3, 7), (0, 5), (3, 0)]
PLAIN = [(5,), (0, 5), (3, 0), (2, 3, 4), *((3, n) for n in LENGTHS)]
AFFINE = [((4, n), (n,), (n,)) for n in (1, 5, 8, 33, 300)] + [((70, 8), (8,), (8,)), ((2, 3, 8), (8,), (8,))]


def np_layer_norm(x: np.ndarray, *affine: np.ndarray, normalized_axes: int = 1, eps: float = 1e-5) -> np.ndarray:
    axes = tuple(range(x.ndim - normalized_axes, x.ndim))
    if x.size == 0:
        return x
    d = x - x.mean(axes, keepdims=True)
    y = d / np.sqrt((d * d).mean(axes, keepdims=True) + eps)
    return y * affine[0] + affine[1] if affine else y


def affine(x: Any, weight: Any, bias: Any, **kwargs: Any) -> Any:
    return vkml.layer_norm(x, weight=weight, bias=bias, **kwargs)


def torch_plain(torch: Any, x: Any, normalized_axes: int = 1) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[x.ndim - normalized_axes :])


ERRORS = [
    (
        lambda d: vkml.layer_norm(vkml.zeros(2, 3, device=d), 3),
        "ShapeError",
        "^layer_norm: normalized_axes: expected 1 to 2, got 3$",
    ),
    (
        lambda d: vkml.layer_norm(vkml.zeros(2, 3, device=d), 0),
        "ShapeError",
        "^layer_norm: normalized_axes: expected 1 to 2, got 0$",
    ),
    (lambda d: vkml.layer_norm(tensor(1.0, "float32", d)), "ShapeError", "^layer_norm: normalized_axes: expected"),
    (
        lambda d: vkml.layer_norm(vkml.zeros(2, 4, device=d), weight=vkml.zeros(5, device=d)),
        "ShapeError",
        r"^layer_norm: weight: expected shape \(4,\), got \(5,\)$",
    ),
    (
        lambda d: vkml.layer_norm(vkml.zeros(2, 4, device=d), (2,)),
        "ShapeError",
        "^layer_norm: normalized_axes: expected the trailing sizes",
    ),
    (
        lambda d: vkml.layer_norm(vkml.tensor([1, 2], device=d)),
        "DTypeError",
        "^layer_norm: expected a floating-point tensor, got int64$",
    ),
    (
        lambda d: vkml.layer_norm(vkml.zeros(2, 4, device=d), weight=tensor(np.ones(4), "float64", d)),
        "DTypeError",
        "^layer_norm: weight: expected float32",
    ),
]

TestPlain = op_cases(
    "layer_norm",
    np_layer_norm,
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
        bench((8192, 8192), dtype="bfloat16", backward=True),
    ],
)
TestTwoAxes = op_cases(
    "layer_norm",
    np_layer_norm,
    name="layer_norm over two axes",
    torch=torch_plain,
    shapes=[(2, 3, 4), (3, 5, 65)],
    tolerance=Tolerance(row=1e-6),
    grad_tolerance=3e-5,
    normalized_axes=2,
)
TestAffine = op_cases(
    affine,
    np_layer_norm,
    name="layer_norm with weight and bias",
    shapes=AFFINE,
    tolerance=Tolerance(row=2e-6),
    second=True,
    grad_tolerance=3e-5,
    grad_shapes=AFFINE[1:3],
)


def test_variance_does_not_cancel(device: str, rng: np.random.Generator) -> None:
    y = vkml.layer_norm(tensor([2000, 2001, 2002, 2003], "float32", device))
    assert_close(y, np.array([-1.3416355, -0.4472118, 0.4472118, 1.3416355]), rtol=1e-6)
    for n in (100, 5000, 100000):
        held = to_numpy(tensor(1e4 + 1e-2 * rng.normal(0, 1, (3, n)), "float32"))
        exact = np_layer_norm(held - held[:, :1])
        assert_within(to_numpy(vkml.layer_norm(tensor(held, "float32", device))), exact, 2e-6 * np.abs(exact).max())


def test_edges(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    for dtype, eps in (("float32", 1e-5), ("float16", 1e-12), ("bfloat16", 1e-5)):
        for value in (0.1, 1000.0, -3.0):
            assert (to_numpy(vkml.layer_norm(tensor(np.full((2, 37), value), dtype, device), 1, eps)) == 0).all()
    assert np.isnan(to_numpy(vkml.layer_norm(tensor(np.full((1, 4), 2.0), "float32", device), 1, 0.0))).all()
    assert (to_numpy(vkml.layer_norm(tensor([[5.0], [7.0]], "float32", device))) == 0).all()
    for bad in (nan, inf, -inf):
        y = to_numpy(vkml.layer_norm(tensor([[1, 2, 3], [1, bad, 3], [1, 2, 3]], "float32", device)))
        assert np.isnan(y[1]).all()
        assert_close(y[::2], np.tile([-1.2247357, 0, 1.2247357], (2, 1)), rtol=1e-6, atol=1e-7)


def test_float_parameters_of_16_bit_input(device: str, rng: np.random.Generator) -> None:
    for dtype in ("float16", "bfloat16"):
        x, g = tensor(rng.normal(0, 1, (6, 72)), dtype, device, True), tensor(rng.normal(0, 1, (6, 72)), dtype, device)
        w, b = (
            tensor(rng.normal(0, 1, 72), "float32", device, True),
            tensor(rng.normal(0, 1, 72), "float32", device, True),
        )
        y = vkml.layer_norm(x, weight=w, bias=b)
        assert y.dtype == x.dtype
        y.backward(g)
        assert w.grad.dtype == vkml.float32
        hat = np_layer_norm(to_numpy(x))
        assert_within(to_numpy(y), hat * to_numpy(w) + to_numpy(b), 0.02)
        assert_close(w.grad, (to_numpy(g) * hat).sum(0), atol=1e-4)
        assert_close(b.grad, to_numpy(g).sum(0), atol=1e-4)


@pytest.mark.parametrize("structure", ["resident", "wide", "split", "looped"])
@pytest.mark.parametrize("n", [300, 1024, 40000, 61440, 1 << 20])
def test_each_structure(vulkan: str, rng: np.random.Generator, structure: str, n: int) -> None:
    rows = 2 if n < 100000 else 1
    arrays = [rng.normal(1, 2, (rows, n)), rng.normal(0, 1, n), rng.normal(0, 1, n), rng.normal(0, 1, (rows, n))]
    held = [to_numpy(tensor(a, "float32")) for a in arrays]
    x, w, b = (tensor(a, "float32", vulkan, True) for a in held[:3])
    try:
        _core._force_row_structure(structure)
        y = vkml.layer_norm(x, weight=w, bias=b)
        y.backward(tensor(held[3], "float32", vulkan))
        gradient = to_numpy(x.grad)
    finally:
        _core._force_row_structure("")
    assert_within(to_numpy(y), np_layer_norm(*held[:3]), 5e-6)
    hat, gh = np_layer_norm(held[0]), held[3] * held[1]
    r = 1 / np.sqrt(held[0].var(-1, keepdims=True) + 1e-5)
    assert_within(gradient, r * (gh - gh.mean(-1, keepdims=True) - hat * (gh * hat).mean(-1, keepdims=True)), 5e-6)


def test_parameter_gradients_repeat(device: str, rng: np.random.Generator) -> None:
    x, g = (
        tensor(rng.normal(0, 1, (5000, 40)), "float32", device),
        tensor(rng.normal(0, 1, (5000, 40)), "float32", device),
    )
    w, b = tensor(np.ones(40), "float32", device, True), tensor(np.zeros(40), "float32", device, True)
    first = vkml.grad([vkml.layer_norm(x, weight=w, bias=b)], [w, b], [g])
    for a, again in zip(first, vkml.grad([vkml.layer_norm(x, weight=w, bias=b)], [w, b], [g]), strict=True):
        assert_same_bits(a, again)
    hat = np_layer_norm(to_numpy(x))
    assert_close(first[0], (to_numpy(g) * hat).sum(0), atol=1e-6 * np.abs(to_numpy(g) * hat).sum(0).max())

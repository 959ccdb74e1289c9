"""where, masked_fill and clamp: values, broadcasting, dtypes, NaN, gradients, in-place forms, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import ALL, FLOATS, INTEGERS, assert_within, dtype_name, tensor, to_numpy
from op_cases import EXACT, SHAPES, op_cases

import vkml

NAN, INF = math.nan, math.inf
TRIPLES = [
    ((), (), ()),
    ((4,), (4,), (4,)),
    ((3, 1), (4,), (2, 3, 4)),
    ((2, 3), (), (3,)),
    ((), (2, 2), (2,)),
    ((0, 3), (3,), (1, 3)),
    ((33, 65), (33, 65), (33, 65)),
    ((5, 1, 1), (5, 7, 9), (9,)),
]


@pytest.mark.parametrize("dtype", ALL)
def test_where(dtype: str, device: str, rng: np.random.Generator) -> None:
    for c_shape, x_shape, y_shape in TRIPLES:
        c = rng.integers(0, 2, c_shape).astype(bool)
        x, y = tensor(rng.integers(0, 9, x_shape), dtype, device), tensor(rng.integers(0, 9, y_shape), dtype, device)
        got = vkml.where(tensor(c, "bool", device), x, y)
        assert dtype_name(got) == dtype
        np.testing.assert_array_equal(to_numpy(got), np.where(c, to_numpy(x), to_numpy(y)))


def test_where_reads_strides(device: str, rng: np.random.Generator) -> None:
    c, x, y = rng.integers(0, 2, (6, 8)).astype(bool), rng.normal(size=(8, 6)), rng.normal(size=(6, 16))
    got = vkml.where(tensor(c, "bool", device), tensor(x, device=device).T, tensor(y, device=device)[:, ::2])
    np.testing.assert_array_equal(to_numpy(got), np.where(c, x.T, y[:, ::2]).astype(np.float32))
    deep = rng.normal(size=(2, 3, 2, 3, 2, 3)).astype(np.float32)
    axes = (5, 3, 1, 4, 2, 0)
    other = rng.normal(size=deep.transpose(axes).shape).astype(np.float32)
    mask = other > 0
    got = vkml.where(
        tensor(mask, "bool", device), tensor(deep, device=device).permute(*axes), tensor(other, device=device)
    )
    np.testing.assert_array_equal(got.numpy(), np.where(mask, deep.transpose(axes), other))


def test_where_promotes_and_takes_numbers(device: str) -> None:
    c = tensor([True, False], "bool", device)
    assert dtype_name(vkml.where(c, tensor([1, 2], "int32", device), 1.5)) == "float32"
    assert dtype_name(vkml.where(c, tensor([1.0, 2.0], "float16", device), 1.5)) == "float16"
    assert dtype_name(vkml.where(c, tensor([1], "int8", device), tensor([1], "uint8", device))) == "int16"
    assert vkml.where(c, 1, 2).numpy().tolist() == [1, 2]
    assert dtype_name(vkml.where(c, 1, 2.0)) == "float32"
    big = 2**53 + 1
    assert vkml.where(c, tensor([big, 0], "int64", device), big).numpy().tolist() == [big, big]


def test_where_is_a_pick(device: str) -> None:
    c = tensor([True, False], "bool", device)
    x, y = tensor([1.0, NAN], device=device, requires_grad=True), tensor([INF, 2.0], device=device, requires_grad=True)
    out = vkml.where(c, x, y)
    assert to_numpy(out).tolist() == [1, 2]
    (out * out).sum().backward()
    assert x.grad.numpy().tolist() == [2, 0]
    assert y.grad.numpy().tolist() == [0, 4]


def test_where_gradients_of_broadcast_operands(device: str) -> None:
    c = tensor([[True, False, True], [False, False, True]], "bool", device)
    x, y = tensor([1.0, 2.0, 3.0], device=device, requires_grad=True), tensor(5.0, device=device, requires_grad=True)
    vkml.where(c, x, y).sum().backward()
    assert x.grad.numpy().tolist() == [1, 0, 2]
    assert y.grad.numpy().tolist() == 3


TestWhere = op_cases(
    lambda x, y: vkml.where(x > y, x, y * 2),
    lambda x, y: np.where(x > y, x, y * 2),
    name="where",
    shapes=[((3, 5), (3, 5)), ((4, 1), (3,))],
    torch=lambda torch, x, y: torch.where(x > y, x, y * 2),
    second=True,
)
TestClamp = op_cases(
    lambda x, **bounds: vkml.clamp(x, **bounds),
    lambda x, min, max: np.clip(x, min, max),
    name="clamp",
    dtypes=(*FLOATS, *INTEGERS),
    # torch wraps a bound of -1 around to 255 in uint8.
    torch=lambda torch, x, **bounds: torch.clamp(x.to(torch.int64) if x.dtype == torch.uint8 else x, **bounds).to(
        x.dtype
    ),
    shapes=SHAPES,
    tolerance=EXACT,
    min=[-1, None],
    max=[1, 2],
    domain=(-5, 5),
    same_bits=True,
)

TestClampMin = op_cases(
    "clamp_min",
    lambda x, min: np.maximum(x, min),
    dtypes=(*FLOATS, *INTEGERS),
    torch=lambda torch, x, min: torch.clamp(x, min=min),
    min=1,
    domain=(-5, 5),
    same_bits=True,
)
TestClampMax = op_cases(
    "clamp_max",
    lambda x, max: np.minimum(x, max),
    dtypes=(*FLOATS, *INTEGERS),
    torch=lambda torch, x, max: torch.clamp(x, max=max),
    max=1,
    domain=(-5, 5),
    same_bits=True,
)


def test_masked_fill(device: str, rng: np.random.Generator) -> None:
    x, mask = rng.normal(size=(4, 5)).astype(np.float32), rng.integers(0, 2, 5).astype(bool)
    t = tensor(x, device=device, requires_grad=True)
    got = vkml.masked_fill(t, tensor(mask, "bool", device), -INF)
    np.testing.assert_array_equal(got.detach().numpy(), np.where(mask, -INF, x))
    vkml.masked_fill(t, tensor(mask, "bool", device), 3.0).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.broadcast_to(~mask, x.shape))
    i = tensor([1, 2, 3], "int64", device)
    assert vkml.masked_fill(i, tensor([True, False, True], "bool", device), 1.5).numpy().tolist() == [1, 2, 1]
    h = tensor([1.0, 2.0], "float16", device)
    filled = h.masked_fill(tensor([True, False], "bool", device), tensor(7.0, device=device))
    assert dtype_name(filled) == "float16"
    assert to_numpy(filled).tolist() == [7, 2]


def test_clamp_of_nan_and_crossed_bounds(device: str) -> None:
    x = tensor([NAN, -5.0, 0.5, 5.0], device=device)
    assert_within(to_numpy(vkml.clamp(x, -1, 1)), np.array([NAN, -1, 0.5, 1]), 0.0)
    assert_within(to_numpy(vkml.clamp(x, 2, 1)), np.array([NAN, 1, 1, 1]), 0.0)
    assert np.isnan(to_numpy(vkml.clamp(x, NAN, 1))).all()
    assert np.isnan(to_numpy(vkml.clamp(x, tensor([NAN] * 4, device=device), 1))).all()
    bounds = tensor([0.0, -9.0, 1.0, 9.0], device=device)
    assert_within(to_numpy(vkml.clamp(x, bounds, 4)), np.array([NAN, -5, 1, 4]), 0.0)
    assert_within(to_numpy(vkml.clamp_min(x, 0)), np.array([NAN, 0, 0.5, 5]), 0.0)
    assert_within(to_numpy(x.clamp_max(bounds)), np.array([NAN, -9, 0.5, 5]), 0.0)


def test_clamp_gradient_is_one_on_the_bounds(device: str) -> None:
    x = tensor([-2.0, -1.0, 0.0, 1.0, 2.0, NAN], device=device, requires_grad=True)
    for call, expected in [
        (lambda: vkml.clamp(x, -1, 1), [0, 1, 1, 1, 0, 0]),
        (lambda: vkml.clamp(x, min=-1), [0, 1, 1, 1, 1, 0]),
        (lambda: vkml.clamp(x, max=1), [1, 1, 1, 1, 0, 0]),
    ]:
        x.grad = None
        call().sum().backward()
        assert x.grad.numpy().tolist() == expected


def test_clamp_promotes(device: str) -> None:
    i = tensor([1, 5], "int64", device)
    assert dtype_name(vkml.clamp(i, 2)) == "int64"
    assert vkml.clamp(i, 1.5).numpy().tolist() == [1.5, 5]


def test_in_place(device: str) -> None:
    a = tensor([-2.0, 0.5, 2.0], device=device, requires_grad=True)
    x = a * 1
    x.clamp_(-1, 1)
    x.masked_fill_(tensor([False, True, False], "bool", device), 9.0)
    assert x.detach().numpy().tolist() == [-1, 9, 1]
    x.sum().backward()
    assert a.grad.numpy().tolist() == [0, 0, 0]


ERRORS: list[tuple[Callable[[str], Any], type, str]] = [
    (lambda d: vkml.where(tensor([1], "int64", d), 1, 2), vkml.DTypeError, "where: cond: expected bool, got int64"),
    (
        lambda d: vkml.masked_fill(tensor([1.0], device=d), tensor([1.0], device=d), 0),
        vkml.DTypeError,
        "masked_fill: mask: expected bool",
    ),
    (
        lambda d: vkml.masked_fill(tensor([1.0], device=d), tensor([[True], [True]], "bool", d), 0),
        vkml.ShapeError,
        "masked_fill: mask: expected a shape",
    ),
    (
        lambda d: vkml.masked_fill(tensor([1.0], device=d), tensor([True], "bool", d), tensor([1.0], device=d)),
        vkml.ShapeError,
        "masked_fill: value",
    ),
    (lambda d: vkml.clamp(tensor([1.0], device=d)), vkml.ShapeError, "clamp: expected min, max or both"),
    (
        lambda d: vkml.where(tensor([True, False], "bool", d), tensor([1.0] * 3, device=d), 0),
        vkml.ShapeError,
        "where: ",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[str], Any], error: type, text: str, device: str) -> None:
    with pytest.raises(error, match=text):
        call(device)

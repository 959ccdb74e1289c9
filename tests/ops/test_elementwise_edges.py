"""Elementwise operators: promotion, edges, accuracy, gradients at kinks, in-place forms, tails and strides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import INTEGERS, assert_within, dtype_name, spacing, tensor, to_numpy
from test_elementwise import erf, erfc, gelu, normal_cdf, sigmoid

import vkml

NAN, INF = math.nan, math.inf


# Promotion -----------------------------------------------------------------------------------------------------------

# torch's lattice, written out: rows and columns in this order.
LATTICE_ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
LATTICE = """
b  u8  i8  i16 i32 i64 f2 bf f4 f8
u8 u8  i16 i16 i32 i64 f2 bf f4 f8
i8 i16 i8  i16 i32 i64 f2 bf f4 f8
i16 i16 i16 i16 i32 i64 f2 bf f4 f8
i32 i32 i32 i32 i32 i64 f2 bf f4 f8
i64 i64 i64 i64 i64 i64 f2 bf f4 f8
f2 f2 f2 f2 f2 f2 f2 f4 f4 f8
bf bf bf bf bf bf f4 bf f4 f8
f4 f4 f4 f4 f4 f4 f4 f4 f4 f8
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8
"""
SHORT = dict(zip(["b", "u8", "i8", "i16", "i32", "i64", "f2", "bf", "f4", "f8"], LATTICE_ORDER, strict=True))


def lattice(a: str, b: str) -> str:
    row = LATTICE.strip().splitlines()[LATTICE_ORDER.index(a)].split()
    return SHORT[row[LATTICE_ORDER.index(b)]]


def test_promotion_of_all_pairs() -> None:
    for a, b in itertools.product(LATTICE_ORDER, repeat=2):
        x, y = tensor([1], a), tensor([1], b)
        assert dtype_name(vkml.add(x, y)) == lattice(a, b), (a, b)
        assert dtype_name(vkml.mul(tensor(1, a), tensor(1, b))) == lattice(a, b), (
            "two rank-0 tensors promote by the table"
        )


KIND = {
    "bool": 0,
    "uint8": 1,
    "int8": 1,
    "int16": 1,
    "int32": 1,
    "int64": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 2,
    "float64": 2,
}


def test_a_lower_rank_counts_only_by_its_kind() -> None:
    for a, b in itertools.product(LATTICE_ORDER, repeat=2):
        expected = b if KIND[b] > KIND[a] else a
        assert dtype_name(vkml.add(tensor([1], a), tensor(1, b))) == expected, (a, b)
        assert dtype_name(vkml.add(tensor(1, b), tensor([1], a))) == expected, (a, b)
    for a in LATTICE_ORDER:
        for number, natural in [(True, "bool"), (1, "int64"), (1.5, "float32")]:
            expected = natural if KIND[natural] > KIND[a] else a
            for shape in ([1], 1):
                assert dtype_name(tensor(shape, a) + number) == expected, (a, number)
                assert dtype_name(number + tensor(shape, a)) == expected, (a, number)


def test_numbers_meet_tensors(device: str) -> None:
    assert (tensor([1], "uint8", device) + 300).numpy().tolist() == [45]
    assert (tensor([3.0], "float64", "cpu") * 0.1).numpy()[0] == 3.0 * 0.1
    assert np.isinf((tensor([1.0], "float16", device) + 1e6).numpy()).all()
    assert dtype_name(tensor([1], "int32", device) / 2) == "float32"
    assert dtype_name(vkml.sqrt(tensor([4], "int64", device))) == "float32"


def test_reflected_operators(device: str) -> None:
    x, i = tensor([2.0, 4.0], device=device), tensor([3, 5], "int64", device)
    for got, expected in [
        (1 - x, [-1, -3]),
        (1 / x, [0.5, 0.25]),
        (2**x, [4, 16]),
        (7 // x, [3, 1]),
        (7 % x, [1, 3]),
        (1 + x, [3, 5]),
        (3 * x, [6, 12]),
        (-x, [-2, -4]),
        (abs(-x), [2, 4]),
        (+x, [2, 4]),
        (7 // i, [2, 1]),
        (7 % i, [1, 2]),
        (2**i, [8, 32]),
        (6 & i, [2, 4]),
        (6 | i, [7, 7]),
        (6 ^ i, [5, 3]),
        (~i, [-4, -6]),
        (i & i, [3, 5]),
        (i**2, [9, 25]),
    ]:
        np.testing.assert_array_equal(to_numpy(got), expected)


# Edges ---------------------------------------------------------------------------------------------------------------

UNARY_EDGES: list[tuple[str, list[float], list[float]]] = [
    ("exp", [88.8, -200, NAN, INF, -INF], [INF, 0, NAN, INF, 0]),
    ("log", [0, -1, INF, 1], [-INF, NAN, INF, 0]),
    ("log2", [8, 1, 0.25, 2.0**100], [3, 0, -2, 100]),
    ("log1p", [1e-7, -1, -2, INF], [1e-7, -INF, NAN, INF]),
    ("expm1", [1e-7, 100, -100, NAN], [1e-7, INF, -1, NAN]),
    ("tanh", [1e3, -1e3, NAN, INF], [1, -1, NAN, 1]),
    ("sigmoid", [-1e4, 1e4, NAN, -INF], [0, 1, NAN, 0]),
    ("sign", [NAN, -0.0, -3, 4], [0, 0, -1, 1]),
    ("rsqrt", [0, 4, -1], [INF, 0.5, NAN]),
    ("relu", [NAN, -1, 2, INF], [NAN, 0, 2, INF]),
    ("gelu", [INF, -INF, NAN], [INF, NAN, NAN]),
    ("silu", [-1e4, -INF, INF], [0, NAN, INF]),
    ("softplus", [1e4, -1e4, NAN], [1e4, 0, NAN]),
    ("round", [0.5, 1.5, 2.5, -0.5], [0, 2, 2, 0]),
    ("sin", [INF, NAN], [NAN, NAN]),
    ("cos", [-INF, 0], [NAN, 1]),
    ("erf", [INF, -INF, NAN], [1, -1, NAN]),
    ("erfc", [INF, -INF, NAN], [0, 2, NAN]),
    ("exp2", [3, -2, 200], [8, 0.25, INF]),
    ("mish", [-1e4, 1e4, -INF], [0, 1e4, NAN]),
    ("logsigmoid", [-1e4, 1e4], [-1e4, 0]),
]


@pytest.mark.parametrize(("name", "values", "expected"), UNARY_EDGES, ids=[e[0] for e in UNARY_EDGES])
def test_unary_edges(name: str, values: list[float], expected: list[float], device: str) -> None:
    for dtype in ("float32", "float64"):
        if dtype == "float64" and name == "exp":
            values, expected = values[1:], expected[1:]
        if name in ("expm1", "exp2") and dtype == "float64":
            continue  # their overflow lies elsewhere
        got = to_numpy(getattr(vkml, name)(tensor(values, dtype, device)))
        assert_within(got, np.array(expected, dtype=float), 1e-12, f"{name} {dtype}")


FIGURES = [
    ("erf", 0.5, 0.5204999, 1e-7),
    ("erfc", 5.0, 1.537460e-12, 5e-19),
    ("gelu", 1.0, 0.8413447, 1e-7),
    ("gelu", -5.0, -1.4332579e-06, 1e-12),
    ("sin", 1e5, 0.0357488, 1e-7),
    ("sin", 1e6, -0.3499935, 1e-7),
]


@pytest.mark.parametrize(("name", "x", "expected", "allowed"), FIGURES)
def test_figures(name: str, x: float, expected: float, allowed: float, device: str) -> None:
    assert_within(to_numpy(getattr(vkml, name)(tensor([x], device=device))), np.array([expected]), allowed, name)


def test_gelu_tanh_figures(device: str) -> None:
    x = tensor([1.0, -13.24, 20.625, 1e4, -1e4], device=device)
    assert_within(to_numpy(vkml.gelu(x, "tanh")), np.array([0.8411920, 0, 20.625, 1e4, 0]), 1e-7)
    with pytest.raises(vkml.ShapeError, match="gelu: approximate: expected none or tanh, got '"):
        vkml.gelu(x, "exact")


def test_pow_edges(device: str) -> None:
    a = [-2, -2, -2, 0, 0, NAN, 1, 2, -INF, -INF, 0.5, -1, -0.0, INF, 1.5]
    b = [2, 3, 0.5, 0, -1, 0, NAN, INF, 3, 2, INF, INF, -3, -1, -1e30]
    expected = [4, -8, NAN, 1, INF, 1, 1, INF, -INF, INF, 0, 1, -INF, 0, 0]
    for dtype in ("float32", "float64"):
        got = to_numpy(vkml.pow(tensor(a, dtype, device), tensor(b, dtype, device)))
        assert_within(got, np.array(expected, dtype=float), 0.0, dtype)


def test_integer_pow(device: str) -> None:
    base, exponent = tensor([3, -2, 1, -1, 5, 0], "int64", device), tensor([4, 63, -1, -3, -2, 0], "int64", device)
    assert vkml.pow(base, exponent).numpy().tolist() == [81, -(2**63), 1, -1, 0, 1]
    with pytest.raises(vkml.ShapeError, match="pow: exponent: expected at least 0"):
        base**-1


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division(dtype: str, device: str, rng: np.random.Generator) -> None:
    low = 0 if dtype == "uint8" else -100
    a, b = rng.integers(low, 100, 999), rng.integers(low, 100, 999)
    b[b == 0] = 7
    x, y = tensor(a, dtype, device), tensor(b, dtype, device)
    np.testing.assert_array_equal((x // y).numpy(), a // b)
    np.testing.assert_array_equal((x % y).numpy(), a % b)
    for call in (vkml.floor_divide, vkml.remainder):
        with pytest.raises(vkml.Error, match="expected a non-zero integer divisor, got 0"):
            call(x, tensor(np.where(np.arange(999) == 998, 0, b), dtype, device)).numpy()
        with pytest.raises(vkml.Error, match="expected a non-zero integer divisor, got 0"):
            call(x, 0).numpy()
    np.testing.assert_array_equal((x // y).numpy(), a // b)


def test_floored_division(device: str) -> None:
    i = tensor([-7, 7], "int64", device)
    assert (i // tensor([2, -2], "int64", device)).numpy().tolist() == [-4, -4]
    assert (i % tensor([2, -2], "int64", device)).numpy().tolist() == [1, -1]
    a = tensor([5.0, 5.0, -7.0, 1e30, -1e30, 0.0], device=device)
    b = tensor([INF, 0.0, 2.0, 3.0, 7.0, 3.0], device=device)
    expected = [5.0, NAN, 1.0, math.fmod(float(np.float32(1e30)), 3), (-float(np.float32(1e30))) % 7, 0.0]
    assert_within(to_numpy(vkml.remainder(a, b)), np.array(expected), 0.0)
    assert_within(
        to_numpy(vkml.floor_divide(tensor([7.0, -7.0, 1.0], device=device), tensor([2.0, 2.0, 0.0], device=device))),
        np.array([3, -4, INF]),
        0.0,
    )


def test_maximum_of_nan(device: str) -> None:
    a, b = tensor([NAN, 1, NAN, 2], device=device), tensor([1, NAN, NAN, 3], device=device)
    assert_within(to_numpy(vkml.maximum(a, b)), np.array([NAN, NAN, NAN, 3]), 0.0)
    assert_within(to_numpy(vkml.minimum(a, b)), np.array([NAN, NAN, NAN, 2]), 0.0)


def test_negation_keeps_the_sign_of_zero(device: str) -> None:
    assert np.signbit(vkml.neg(tensor([0.0, -0.0], device=device)).numpy()).tolist() == [True, False]
    assert vkml.neg(tensor([1], "uint8", device)).numpy().tolist() == [255]


ERRORS: list[tuple[Callable[[str], Any], type, str]] = [
    (lambda d: vkml.neg(tensor([True], "bool", d)), vkml.DTypeError, "neg: expected a number type, got bool"),
    (
        lambda d: tensor([True], "bool", d) - tensor([True], "bool", d),
        vkml.DTypeError,
        "sub: expected a number type, got bool",
    ),
    (
        lambda d: vkml.gelu(tensor([1], "int64", d)),
        vkml.DTypeError,
        "gelu: expected a floating-point tensor, got int64",
    ),
    (
        lambda d: tensor([1.0], device=d) & tensor([1.0], device=d),
        vkml.DTypeError,
        "bitwise_and: expected an integer or bool tensor",
    ),
    (
        lambda d: vkml.add(tensor([1.0, 2.0], device=d), tensor([1.0] * 3, device=d)),
        vkml.ShapeError,
        r"add: .*\(2,\).*\(3,\)",
    ),
    (lambda d: vkml.add(1, 2), vkml.ShapeError, "add: expected at least one tensor"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Callable[[str], Any], error: type, text: str, device: str) -> None:
    with pytest.raises(error, match=text):
        call(device)


def test_devices_do_not_mix(vulkan: str) -> None:
    with pytest.raises(vkml.DeviceError, match="add: "):
        vkml.add(tensor([1.0]), tensor([1.0], device=vulkan))


# Accuracy ------------------------------------------------------------------------------------------------------------

WIDE: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 8),
    "exp2": (np.exp2, 8),
    "expm1": (np.expm1, 8),
    "log": (np.log, 8),
    "log2": (np.log2, 8),
    "log1p": (np.log1p, 8),
    "tanh": (np.tanh, 8),
    "sin": (np.sin, 3),
    "cos": (np.cos, 3),
    "tan": (np.tan, 8),
    "erf": (erf, 8),
    "erfc": (erfc, 8),
    "sigmoid": (sigmoid, 8),
    "softplus": (lambda x: np.logaddexp(0, x), 8),
    "gelu": (gelu, 8),
    "sqrt": (np.sqrt, 3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 3),
    "reciprocal": (np.reciprocal, 3),
}


@pytest.mark.parametrize("name", WIDE)
def test_wide_ranges(name: str, device: str) -> None:
    """Against float64 within the table's ulps, over every size of argument. Only subnormal results may be flushed."""
    rng = np.random.default_rng(3)
    sizes = np.exp(rng.uniform(-80, 80, 40000))
    values = np.concatenate(
        [np.linspace(-110, 110, 50001), rng.normal(0, 2, 50000), sizes, -sizes, rng.uniform(-1e6, 1e6, 50000)]
    )
    x = values.astype(np.float32)
    reference, ulps = WIDE[name]
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64))
        held = expected.astype(np.float32)
    got = to_numpy(getattr(vkml, name)(tensor(x, device=device)))
    expected = np.where(np.isinf(held), held, expected)
    near_overflow = np.abs(expected) > 3.4028e38
    assert_within(
        np.where(near_overflow, 0, got),
        np.where(near_overflow, 0, expected),
        ulps * spacing(expected, "float32") + 2.0**-126,
        name,
    )


def test_pow_over_wide_ranges(device: str) -> None:
    rng = np.random.default_rng(4)
    a = np.exp(rng.uniform(-10, 10, 100000)).astype(np.float32)
    b = rng.normal(0, 8, 100000).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = a.astype(np.float64) ** b.astype(np.float64)
    inside = (expected > 2.0**-126) & (expected < 3.4e38)
    got = to_numpy(vkml.pow(tensor(a, device=device), tensor(b, device=device)))
    assert_within(got[inside], expected[inside], 2 * spacing(expected[inside], "float32"))


# Gradients that are conventions --------------------------------------------------------------------------------------


def grad_of(f: Callable[..., Any], values: list[float], device: str) -> list[float]:
    x = tensor(values, device=device, requires_grad=True)
    f(x).sum().backward()
    return x.grad.numpy().tolist()


def test_gradients_at_kinks(device: str) -> None:
    assert_within(np.array(grad_of(vkml.relu, [-1, 0, 2, NAN], device)), np.array([0, 0, 1, 1]), 0.0)
    assert grad_of(lambda x: vkml.maximum(x, 1.0), [0, 1, 2], device) == [0, 0.5, 1]
    assert grad_of(lambda x: x**2, [0, 3], device) == [0, 6]
    assert grad_of(lambda x: x**0, [0, 3], device) == [0, 0]
    assert grad_of(lambda x: vkml.pow(0.0, x), [2, 0], device) == [0, 0]
    assert grad_of(vkml.rsqrt, [0, 4], device) == [-INF, -0.0625]
    assert grad_of(vkml.log, [0, 2], device) == [INF, 0.5]
    assert grad_of(vkml.round, [0.5, 2], device) == [0, 0]
    assert grad_of(lambda x: x % 3.0, [5, 7], device) == [1, 1]
    assert grad_of(lambda x: 7.0 % x, [3, 4], device) == [-2, -1]


def test_slope_of_gelu(device: str) -> None:
    """Within 8 ulp of its terms, and the rounding of x x in the exponent."""
    x = np.concatenate([np.linspace(-13, 13, 20001), np.linspace(-1, 1, 5001)]).astype(np.float32)
    v = x.astype(np.float64)
    bell, cdf = v * np.exp(v * v / -2) / math.sqrt(2 * math.pi), normal_cdf(v)
    leaf = tensor(x, device=device, requires_grad=True)
    (got,) = vkml.grad([vkml.gelu(leaf)], [leaf], [tensor(np.full(x.shape, -2, np.float32), device=device)])
    allowed = (8 + v * v / 2) * spacing(2 * (cdf + np.abs(bell)), "float32") + 2.0**-125
    assert_within(to_numpy(got), -2 * (cdf + bell), allowed)
    assert np.isnan(grad_of(vkml.gelu, [INF, -INF, NAN], device)).all()


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "mish", "tanh", "sigmoid"])
def test_the_gradient_of_an_activation_is_one_dispatch(name: str, vulkan: str) -> None:
    x = tensor([1.0, -2.0], device=vulkan, requires_grad=True)
    y, g = getattr(vkml, name)(x), tensor([3.0, 4.0], device=vulkan)
    with vkml.profiler.profile(vulkan) as p:
        vkml.grad([y], [x], [g])
    assert len(p.records) == 1


def test_broadcast_gradients_have_their_shapes(device: str) -> None:
    a, b = (
        tensor(np.ones((3, 1)), device=device, requires_grad=True),
        tensor(np.ones(4), device=device, requires_grad=True),
    )
    (a * b + b / a).sum().backward()
    assert tuple(a.grad.shape) == (3, 1)
    assert tuple(b.grad.shape) == (4,)
    np.testing.assert_array_equal(b.grad.numpy(), [6, 6, 6, 6])
    h = tensor(np.ones(3), "float16", device, requires_grad=True)
    (h * tensor(np.ones(3), "float32", device)).sum().backward()
    assert dtype_name(h.grad) == "float16"


# In place ------------------------------------------------------------------------------------------------------------


def test_in_place_changes_the_tensor_and_the_history_follows(device: str) -> None:
    a = tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    x = a * 2
    alias = x
    x *= 3
    x += a
    x.relu_()
    assert x is alias
    x.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [7, 7, 7])
    b = tensor([2.0, 3.0, 4.0], device=device, requires_grad=True)
    y = b * 1
    y *= b  # both gradients read values from before
    y.log_()
    y.sum().backward()
    assert_within(to_numpy(b.grad), 2 / np.array([2.0, 3, 4]), 1e-6)
    e = tensor([1.0, 2.0], device=device, requires_grad=True)
    (e * 1).exp_().sum().backward()
    assert_within(to_numpy(e.grad), np.exp([1.0, 2.0]), 1e-6)


def test_in_place_on_strided_targets(device: str, rng: np.random.Generator) -> None:
    base = rng.normal(size=(6, 8)).astype(np.float32)
    t = tensor(base, device=device)
    view, expected = t.permute(1, 0)[1:7:2], base.copy()
    shown = expected.T[1:7:2]
    view += 2
    view *= tensor(np.arange(6), device=device)
    shown += 2
    shown *= np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(t.numpy(), expected)
    t.zero_()
    assert not t.numpy().any()
    t.fill_(1.5)
    assert (t.numpy() == 1.5).all()
    t.copy_(tensor(np.arange(8), "int64", device))
    np.testing.assert_array_equal(t.numpy(), np.broadcast_to(np.arange(8), (6, 8)))


def test_in_place_on_a_saved_value_is_noticed(device: str) -> None:
    a = tensor([1.0, 2.0], device=device, requires_grad=True)
    x = a * 1
    y = x * x
    x += 1
    with pytest.raises(vkml.Error, match="modified in place"):
        y.sum().backward()
    z = a * 1
    z *= z  # the second operand is read again and lost
    with pytest.raises(vkml.Error, match="modified in place"):
        z.sum().backward()


def test_in_place_refusals(device: str) -> None:
    i, x = tensor([1, 2], "int32", device), tensor([1.0, 2.0], device=device)
    for call, error in [
        (lambda: i.add_(1.5), vkml.DTypeError),
        (lambda: i.div_(2), vkml.DTypeError),
        (lambda: i.exp_(), vkml.DTypeError),
        (lambda: x.add_(tensor(np.ones((2, 2)), device=device)), vkml.ShapeError),
        (lambda: tensor([1.0], device=device).expand([3]).add_(1), vkml.Error),
        (lambda: tensor([1.0], device=device, requires_grad=True).add_(1), vkml.Error),
    ]:
        with pytest.raises(error):
            call()
    assert i.numpy().tolist() == [1, 2]
    assert x.numpy().tolist() == [1, 2]


# Shapes and sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
def test_every_tail(dtype: str, device: str, rng: np.random.Generator) -> None:
    """Counts around the vectors of the kernels, and bases that are not aligned."""
    for n in [*range(1, 36), 127, 128, 129, 1023, 1025]:
        a, b = rng.integers(0, 2, n + 3), rng.integers(0, 2, n + 3)
        for offset in (0, 1, 3):
            x, y = tensor(a, dtype, device)[offset : offset + n], tensor(b, dtype, device)[offset : offset + n]
            expected = np.maximum(a, b)[offset : offset + n]
            np.testing.assert_array_equal(to_numpy(vkml.maximum(x, y)).astype(int), expected)
            np.testing.assert_array_equal(vkml.less(x, y).numpy(), (a < b)[offset : offset + n])


def test_many_axes(device: str, rng: np.random.Generator) -> None:
    """Eight axes none of which merge: more than the arguments of a kernel hold."""
    a = rng.normal(size=(2, 3, 2, 3, 2, 3, 2, 3)).astype(np.float32)
    axes = (7, 5, 3, 1, 6, 4, 2, 0)
    x = tensor(a, device=device).permute(*axes)
    b = rng.normal(size=x.shape).astype(np.float32)
    np.testing.assert_array_equal(to_numpy(x + tensor(b, device=device)), (a.transpose(axes) + b).astype(np.float64))


def test_large_tensors_use_every_thread_alike(device: str, rng: np.random.Generator) -> None:
    a = rng.normal(size=5_000_001).astype(np.float32)
    x = tensor(a, device=device)
    np.testing.assert_array_equal((x + x).numpy(), a + a)
    np.testing.assert_array_equal((x * 0.5 + 1).numpy(), a * np.float32(0.5) + np.float32(1))

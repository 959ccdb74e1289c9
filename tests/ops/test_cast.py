"""cast: every pair of dtypes, roundings, saturation, and layouts, alike on every device."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from helpers import ALL, INTEGERS, NUMPY, bits, dtype_name, is_float, tensor, to_numpy
from op_cases import bench, bench_cases

import vkml

bench_cases(
    "cast", lambda x, to: x.to(to), lambda x, to: x, lambda torch, x, to: x.to(getattr(torch, to)),
    bench=[
        bench((8192, 8192), to="bfloat16", scale=4.0),
        bench((8192, 8192), to="float32", dtype="bfloat16"),
        bench((8192, 8192), to="float16"),
    ],
)  # fmt: skip

NAN, INF = math.nan, math.inf
RANGES = {
    "int64": (-(2**63), 2**63 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int8": (-128, 127),
    "uint8": (0, 255),
}


def reference(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """The rules of casts in Python's exact integers, then NumPy's correctly rounded conversions."""
    if target == "bool":
        return values.astype(np.float64) != 0 if is_float(source) else values != 0
    if is_float(source) and not is_float(target):
        low, high = RANGES[target]
        wide = values.astype(np.float64)
        exact = [0 if math.isnan(x) else low if x <= low else high if x >= high else int(x) for x in wide.tolist()]
        return np.array(exact, dtype=NUMPY[target])
    if not is_float(target):
        return values.astype(NUMPY[target])  # modulo 2^n
    if target in ("float16", "bfloat16") and source in ("int64", "int32"):
        return np.array([round_once(int(v), target) for v in values.tolist()], dtype=NUMPY[target])
    if target in ("float16", "bfloat16") and source == "float64":
        return np.array([round_once(v, target) for v in values.tolist()], dtype=NUMPY[target])
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(NUMPY[target])


def round_once(value: float | int, target: str) -> float:
    """To nearest, ties to even, of the exact value."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    digits, least = (11, -24) if target == "float16" else (8, -133)
    if value == 0:
        return float(value)
    exponent = max(math.frexp(float(abs(value)))[1] - digits, least)
    whole = round(Fraction(abs(value)) / Fraction(2) ** exponent)  # Python rounds ties to even
    result = Fraction(whole) * Fraction(2) ** exponent
    largest = Fraction(65504 if target == "float16" else 3.3895313892515355e38)
    return math.copysign(INF if result > largest else float(result), value)


def samples(dtype: str, rng: np.random.Generator) -> np.ndarray:
    if dtype == "bool":
        return rng.integers(0, 2, 64).astype(np.bool_)
    if dtype in INTEGERS:
        low, high = RANGES[dtype]
        around = [v for e in range(64) for d in (-1, 0, 1) for s in (1, -1) if low <= (v := s * 2**e + d) <= high]
        ties = [
            v
            for v in (2049, 2051, 16777217, 16777219, 33554435, 2**53 + 1, 2**62 + 2**38, 2**62 + 2**38 + 1)
            if v <= high
        ]
        return np.array([*around, *ties, *rng.integers(low, high, 200).tolist()], dtype=NUMPY[dtype])
    values = [
        0.0,
        -0.0,
        1.5,
        -1.5,
        0.9,
        -0.9,
        NAN,
        INF,
        -INF,
        65519,
        65520,
        2049,
        2051,
        6e-8,
        2.9e-8,
        1.00390625,
        1.01171875,
        3.39e38,
        3.3961775e38,
        255.9,
        256.0,
        -1.0,
        127.5,
        128,
        -128.9,
        -129,
        2147483647.0,
        2147483648.0,
        -2147483904.0,
        9.3e18,
        -9.3e18,
        1e300,
        5e-46,
    ]
    with np.errstate(over="ignore"):
        mixed = np.array([*values, *(rng.normal(0, 1, 300) * 10 ** rng.uniform(-12, 12, 300)).tolist()])
        return mixed.astype(NUMPY[dtype])


@pytest.mark.parametrize("source", ALL)
def test_every_pair(source: str, device: str, rng: np.random.Generator) -> None:
    values = samples(source, rng)
    x = vkml.tensor(values.astype(np.float32) if source == "bfloat16" else values, dtype=source, device=device)
    assert bits(x) == np.ascontiguousarray(values).tobytes() or not np.isfinite(values.astype(np.float64)).all()
    for target in ALL:
        y = vkml.cast(x, target)
        assert dtype_name(y) == target
        got, expected = to_numpy(y), reference(values, source, target)
        expected = expected.astype(np.float64) if is_float(target) else expected
        bad = ~((got == expected) | ((got != got) & (expected != expected)))
        assert not bad.any(), (
            f"{source} to {target}: {values[bad][:4]} gave {got[bad][:4]}, expected {expected[bad][:4]}"
        )
        if is_float(source) and is_float(target):
            number = ~np.isnan(values.astype(np.float64))
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(values.astype(np.float64))[number])


def test_figures(device: str) -> None:
    halves = vkml.cast(tensor([65519, 65520, 2049, 2051, 6e-8, 2.9e-8], device=device), "float16")
    assert to_numpy(halves).tolist() == [65504, INF, 2048, 2052, 5.960464477539063e-08, 0]
    brains = to_numpy(vkml.cast(tensor([1.00390625, 1.01171875, 3.39e38, 3.3961775e38], device=device), "bfloat16"))
    assert brains.tolist() == [1.0, 1.015625, float(ml_dtypes.bfloat16(3.3895314e38)), INF]
    assert vkml.cast(tensor([16777217], "int64", device), "float32").numpy().tolist() == [16777216]
    assert vkml.cast(tensor([2**40 + 3], "int64", device), "int32").numpy().tolist() == [3]
    assert vkml.cast(tensor([1e10, -1e10, NAN], device=device), "int32").numpy().tolist() == [2**31 - 1, -(2**31), 0]


def test_f64_to_16_bits_rounds_once() -> None:
    # Just above a tie of f16; rounded to f32 first it would be the tie and go down.
    value = 1 + 2.0**-11 + 2.0**-40
    assert to_numpy(vkml.cast(tensor([value], "float64"), "float16"))[0] == 1 + 2.0**-10
    value = 1 + 2.0**-8 + 2.0**-40
    assert to_numpy(vkml.cast(tensor([value], "float64"), "bfloat16"))[0] == 1 + 2.0**-7


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_every_16_bit_value_survives_the_round_trip(target: str, device: str) -> None:
    x = np.arange(65536, dtype=np.uint16).view(NUMPY[target]).astype(np.float32)
    x = x[~np.isnan(x)]
    wide = tensor(x, device=device)
    back = vkml.cast(vkml.cast(wide, target), "float32")
    assert bits(back) == bits(wide)


def test_strides(device: str, rng: np.random.Generator) -> None:
    a = rng.normal(0, 50, (3, 4, 5, 6)).astype(np.float32)
    x = tensor(a, device=device)
    for view, shown in [
        (x.permute(3, 1, 0, 2), a.transpose(3, 1, 0, 2)),
        (x[:, ::2, 1:, ::3], a[:, ::2, 1:, ::3]),
        (x[1, 2], a[1, 2]),
        (x[:, :1].expand([3, 4, 5, 6]), np.broadcast_to(a[:, :1], a.shape)),
        (x[:, :0], a[:, :0]),
        (x[0, 0, 0, 0], a[0, 0, 0, 0]),
    ]:
        np.testing.assert_array_equal(vkml.cast(view, "int16").numpy(), shown.astype(np.int16))
    eight = rng.integers(0, 9, (2, 1, 3, 2, 2, 3, 2, 2))
    y = tensor(eight, "int32", device).permute(7, 5, 3, 1, 6, 4, 2, 0)
    np.testing.assert_array_equal(vkml.cast(y, "float32").numpy(), eight.transpose(7, 5, 3, 1, 6, 4, 2, 0))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1023, 2056])
@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(["float32", "float16", "bfloat16"], 2)))
def test_in_vectors_and_one_by_one_have_the_same_bits(source: str, target: str, count: int, device: str) -> None:
    """Random bits of every class of number; the view from element 1 is not aligned and takes the other kernel."""
    rng = np.random.default_rng(count)
    raw = rng.integers(0, 2**32 if source == "float32" else 2**16, count + 1)
    raw[rng.integers(0, count + 1, count // 3)] %= 2**12  # subnormal numbers
    held = raw.astype(np.uint32).view(np.float32) if source == "float32" else raw.astype(np.uint16)
    if source != "float32":
        held = held.view(np.float16 if source == "float16" else ml_dtypes.bfloat16)
    x = vkml.tensor(held, dtype=source, device=device)
    one_by_one = x[1:].to(target)
    in_vectors = x[1:].clone().to(target)
    assert bits(one_by_one) == bits(in_vectors)


def test_gradient_comes_back_in_the_dtype_of_the_input(device: str) -> None:
    x = tensor([1.0, 2.0], "float16", device, requires_grad=True)
    (vkml.cast(x, "float32") * 3).sum().backward()
    assert dtype_name(x.grad) == "float16"
    assert to_numpy(x.grad).tolist() == [3, 3]
    assert not vkml.cast(x, "int32").requires_grad


def test_same_dtype_is_the_tensor_itself(device: str) -> None:
    x = tensor([1.0], device=device, requires_grad=True)
    assert vkml.cast(x, "float32").is_leaf


def test_devices_agree(vulkan: str, rng: np.random.Generator) -> None:
    for source, target in itertools.product(ALL, ALL):
        values = samples(source, rng)
        if is_float(source):
            values = values[~np.isnan(values.astype(np.float64))]
        values = values.astype(np.float32) if source == "bfloat16" else values
        a, b = (vkml.cast(vkml.tensor(values, dtype=source, device=d), target) for d in ("cpu", vulkan))
        assert bits(a) == bits(b), f"{source} to {target}"

"""Philox draws: known answers, the same bits on both devices, the default generator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from helpers import assert_same_bits, to_numpy
from op_cases import bench, bench_cases

import vkml

for drawn in ("rand", "randn"):
    bench_cases(
        drawn, lambda x, op=drawn: getattr(vkml, op)(x.shape, seed=7, device=x.device),
        lambda x, op=drawn: getattr(vkml, op)(x.shape, seed=7, device="cpu").numpy(),
        lambda torch, x, op=drawn: getattr(torch, op)(x.shape, device=x.device),
        bench=[bench((4096, 4096), bytes=4.0 * 4096**2, random=True)],
    )  # fmt: skip

MASK = 0xFFFFFFFF


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox4x32-10 in Python integers, straight from the rounds' definition."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & MASK, (p >> 32) ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def words(seed: int, offset: int, index: int) -> list[int]:
    split = lambda x: [x & MASK, (x >> 32) & MASK]  # noqa: E731
    return philox(split(index) + split(offset), split(seed))


def test_the_reference_has_the_published_answers() -> None:
    assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    pi = philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])
    assert pi == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize(
    ("seed", "offset", "expected"),
    [
        (123, 5, [0.7899538, 0.5723102, 0.49975926, 0.3039152]),
        (0, 0, [0.39904642, 0.97224116, 0.01944941, 0.78736776]),
        (2**40 + 7, 2**33 + 1, [0.27984762, 0.06610048, 0.05164593]),
    ],
)
def test_rand_known_answers(device: str, seed: int, offset: int, expected: list[float]) -> None:
    got = vkml.rand([len(expected)], seed, offset, device=device)
    assert str(got.dtype).endswith("float32")
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=5e-8)  # answers of seven to eight digits


def test_randint_known_answers(device: str) -> None:
    assert vkml.randint(0, 10, [8], 123, 5, device=device).tolist() == [7, 5, 4, 3, 1, 6, 9, 6]
    assert vkml.randint(-3, 4, [8], 1, 0, device=device).tolist() == [3, 1, -2, 2, -2, -2, 0, 0]


def test_randn_known_answers(device: str) -> None:
    got = vkml.randn([4], 123, 5, device=device).numpy()
    np.testing.assert_allclose(got, [0.2341653, 0.5900942, 0.9957197, -0.1694503], atol=2e-6, rtol=0)


@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (123, 5), (2**64 - 1, 2**64 - 2), (2**32, 2**33 + 1)])
def test_every_rule_against_the_words(device: str, seed: int, offset: int) -> None:
    n = 300
    w = [words(seed, offset, i) for i in range(n)]
    uniform = np.array([x[0] >> 8 for x in w], np.float64) * 2.0**-24
    make = lambda dtype: to_numpy(vkml.rand((n,), seed, offset, dtype=dtype, device=device))  # noqa: E731
    np.testing.assert_array_equal(make("float32"), uniform)
    np.testing.assert_array_equal(make("float16"), uniform.astype(np.float16))
    np.testing.assert_array_equal(make("bfloat16"), uniform.astype(ml_dtypes.bfloat16).astype(np.float64))
    double = np.array([((x[0] >> 5) << 26) + (x[1] >> 6) for x in w], np.float64) * 2.0**-53
    np.testing.assert_array_equal(make("float64"), double)
    v = np.array([x[1] >> 8 for x in w], np.float64) * 2.0**-24
    normal = np.sqrt(-2 * np.log(uniform + 2.0**-24)) * np.cos(2 * np.pi * v)
    np.testing.assert_allclose(vkml.randn((n,), seed, offset, device=device).numpy(), normal, atol=2e-6, rtol=0)
    for low, high in [(0, 10), (-5, 2**32 - 5), (-(2**63), 2**63 - 1), (-(2**40), 2**41)]:
        span = high - low
        steps = [(x[0] * span) >> 32 if span <= 2**32 else (((x[1] << 32) | x[0]) * span) >> 64 for x in w]
        got = vkml.randint(low, high, (n,), seed, offset, device=device).tolist()
        assert got == [low + s for s in steps], (low, high)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_devices_agree(vulkan: str, dtype: str) -> None:
    shape = (3, 5, 1111)
    assert_same_bits(vkml.rand(shape, 9, 4, dtype=dtype), vkml.rand(shape, 9, 4, dtype=dtype, device=vulkan))
    a = to_numpy(vkml.randn(shape, 9, 4, dtype=dtype))
    b = to_numpy(vkml.randn(shape, 9, 4, dtype=dtype, device=vulkan))
    ulp = {"float16": 2.0**-9, "bfloat16": 2.0**-6}.get(dtype, 0.0)  # a value of 2 to 4 may round either way
    np.testing.assert_allclose(a, b, atol=2e-6 + ulp, rtol=0)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_randint_dtypes(device: str, dtype: str) -> None:
    low, high = (0, 200) if dtype == "uint8" else (-100, 100)
    got = vkml.randint(low, high, (64,), 3, dtype=dtype, device=device)
    assert str(got.dtype).endswith(dtype)
    assert got.tolist() == vkml.randint(low, high, (64,), 3).tolist()


def test_elements_do_not_depend_on_the_shape(device: str) -> None:
    whole = vkml.rand((1000,), 5, 6, device=device).numpy()
    np.testing.assert_array_equal(vkml.rand((10, 7), 5, 6, device=device).numpy().ravel(), whole[:70])
    assert float(vkml.rand((), 5, 6, device=device).item()) == whole[0]
    assert tuple(vkml.rand((0, 3), 5, 6, device=device).shape) == (0, 3)


def test_seeds_count_modulo_2_64(device: str) -> None:
    a = vkml.rand((5,), -1, 2**64 + 3, device=device).numpy()
    np.testing.assert_array_equal(a, vkml.rand((5,), 2**64 - 1, 3, device=device).numpy())


def test_default_generator_moves_by_one_offset_per_call(device: str) -> None:
    vkml.manual_seed(42)
    got = [vkml.rand((7,), device=device), vkml.randn((7,), device=device), vkml.randint(0, 99, (7,), device=device)]
    np.testing.assert_array_equal(got[0].numpy(), vkml.rand((7,), 42, 0).numpy())
    np.testing.assert_allclose(got[1].numpy(), vkml.randn((7,), 42, 1).numpy(), atol=2e-6)
    assert got[2].tolist() == vkml.randint(0, 99, (7,), 42, 2).tolist()
    vkml.manual_seed(42)
    np.testing.assert_array_equal(vkml.rand((7,)).numpy(), got[0].numpy())


def test_randperm(device: str) -> None:
    got = vkml.randperm(1000, 4, 2, device=device).tolist()
    assert sorted(got) == list(range(1000)) and got != list(range(1000))
    assert got == vkml.randperm(1000, 4, 2).tolist() and got != vkml.randperm(1000, 4, 3).tolist()
    assert vkml.randperm(0, 1, device=device).tolist() == []


def test_moments(device: str) -> None:
    x = to_numpy(vkml.randn((200_000,), 1, device=device))
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01 and abs((x**3).mean()) < 0.03 and 4 < np.abs(x).max() < 6
    u = to_numpy(vkml.rand((200_000,), 2, device=device))
    assert abs(u.mean() - 0.5) < 0.003 and u.min() >= 0 and u.max() < 1
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.01


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: vkml.randint(3, 3, (2,), device=d), "ShapeError", r"randint: expected low < high, got 3 and 3"),
        (
            lambda d: vkml.randint(0, 300, (2,), dtype="uint8", device=d),
            "ShapeError",
            r"randint: expected a range that uint8 holds",
        ),
        (
            lambda d: vkml.randint(0, 3, (2,), dtype="float32", device=d),
            "DTypeError",
            r"randint: dtype: expected an integer",
        ),
        (
            lambda d: vkml.rand((2,), 1, dtype="int64", device=d),
            "DTypeError",
            r"rand: dtype: expected a floating-point",
        ),
        (lambda d: vkml.rand((-2,), 1, device=d), "ShapeError", r"expected"),
    ],
)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(device)  # type: ignore[operator]


def test_draws_may_want_gradients(device: str) -> None:
    like = vkml.zeros(2, 3, device=device)
    for x in (
        vkml.rand(2, 3, device=device, requires_grad=True),
        vkml.randn((2, 3), device=device, requires_grad=True),
        vkml.rand_like(like, requires_grad=True),
        vkml.randn_like(like, requires_grad=True),
    ):
        assert x.requires_grad and x.is_leaf
        (x * x).sum().backward()
        assert vkml.equal(x.grad, 2 * x.detach()).all().item()
    assert not vkml.randn(2, 3, device=device).requires_grad


def test_a_name_that_no_form_has_is_named() -> None:
    for call, name in (
        (lambda: vkml.rand(2, bogus=1), "bogus"),
        (lambda: vkml.randn(2, 3, generator=None), "generator"),
        (lambda: vkml.rand(size=(2,)), "size"),
    ):
        with pytest.raises(vkml.DTypeError, match=f"expected the arguments shape, seed, .*, got {name}"):
            call()

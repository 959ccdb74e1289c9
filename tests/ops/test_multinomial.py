"""multinomial: against the definition in Python integers, the same bits on both devices, and the frequencies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import to_numpy
from test_random import words

import vkml

FLOATS = ["float32", "float16", "bfloat16", "float64"]


def word(seed: int, offset: int, index: int) -> int:
    w = words(seed, offset, index)
    return (w[1] << 32) | w[0]


def drawn_with(weights: np.ndarray, samples: int, seed: int, offset: int) -> list[list[int]]:
    """Each weight as a whole number of the unit that the operator takes, in exact arithmetic."""
    columns = weights.shape[1]
    out = []
    for r, row in enumerate(np.float32(weights)):
        exponent = max(math.frexp(float(row.max()))[1] - 24, -149)
        unit = Fraction(2) ** exponent / 2 ** (62 - 24 - columns.bit_length())
        shares = [math.floor(Fraction(float(w)) / unit) for w in row]
        sums = np.cumsum(np.array(shares, object))
        targets = [(word(seed, offset, r * samples + s) * int(sums[-1])) >> 64 for s in range(samples)]
        out.append([next(i for i, total in enumerate(sums) if total > t) for t in targets])
    return out


def drawn_without(weights: np.ndarray, samples: int, seed: int, offset: int) -> list[list[int]]:
    """The first to arrive of independent exponential clocks."""
    columns = weights.shape[1]
    out = []
    for r, row in enumerate(np.float32(weights)):
        times = [
            -math.log2((word(seed, offset, r * columns + i) | 1) / 2**64) / w if w > 0 else math.inf
            for i, w in enumerate(row.astype(np.float64))
        ]
        out.append([int(i) for i in np.argsort(times, kind="stable")[:samples]])
    return out


def weights_of(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Over many powers of two, and a third of them 0."""
    values = np.exp2(rng.uniform(-20, 20, shape)) * (rng.random(shape) > 0.33)
    values[..., 0] = 1.0
    return values.astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 5), (4, 300)])
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (123, 5), (2**64 - 1, 2**33 + 1)])
def test_with_replacement_by_the_definition(device, rng, shape, seed, offset):
    w = weights_of(rng, shape)
    for samples in (1, 6, 40):
        got = vkml.multinomial(vkml.tensor(w, device=device), samples, True, seed=seed, offset=offset)
        assert got.dtype == vkml.int64 and got.shape == (shape[0], samples) and str(got.device) == device
        assert got.tolist() == drawn_with(w, samples, seed, offset)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 5), (4, 300)])
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (123, 5), (2**64 - 1, 2**33 + 1)])
def test_without_replacement_by_the_definition(device, rng, shape, seed, offset):
    w = weights_of(rng, shape)
    most = int((w > 0).sum(1).min())
    for samples in {1, min(2, most), most}:
        got = vkml.multinomial(vkml.tensor(w, device=device), samples, seed=seed, offset=offset)
        assert got.dtype == vkml.int64 and got.shape == (shape[0], samples)
        reference = drawn_without if samples > 1 else drawn_with
        assert got.tolist() == reference(w, samples, seed, offset)


@pytest.mark.parametrize("replacement", [False, True])
def test_extreme_weights(device, replacement):
    tiny, huge = np.float32(1e-45), np.finfo(np.float32).max
    for row in ([tiny, 0, tiny * 3, tiny], [huge, huge, tiny, huge], [0, -0.0, huge, 0], [tiny, 0, 0, 0]):
        w = np.array([row], np.float32)
        samples = 9 if replacement else int((w > 0).sum())
        got = vkml.multinomial(vkml.tensor(w, device=device), samples, replacement, seed=4)
        reference = drawn_with if samples == 1 or replacement else drawn_without
        assert got.tolist() == reference(w, samples, 4, 0), row


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_devices_agree(vulkan, rng, dtype, replacement):
    w = vkml.tensor(rng.random((7, 1000)).astype(np.float32) + 0.001).to(dtype)
    on_cpu = vkml.multinomial(w, 500, replacement, seed=9, offset=4)
    assert vkml.multinomial(w.to(vulkan), 500, replacement, seed=9, offset=4).tolist() == on_cpu.tolist()
    assert on_cpu.tolist() == vkml.multinomial(w.float(), 500, replacement, seed=9, offset=4).tolist()


@pytest.mark.parametrize("replacement", [False, True])
def test_layouts_and_ranks(device, rng, replacement):
    w = vkml.tensor(rng.random((6, 8)).astype(np.float32) + 0.1, device=device)
    for x in (w.T, w[::2, 1:], w[1:2].expand(3, 8), w[:, 3]):
        wanted = vkml.multinomial(x.clone(), 3, replacement, seed=2).tolist()
        assert x.multinomial(3, replacement, seed=2).tolist() == wanted
    one = w[0].multinomial(4, replacement, seed=2)
    assert one.shape == (4,) and one.tolist() == w[:1].multinomial(4, replacement, seed=2)[0].tolist()
    assert vkml.multinomial(w[:0], 4, replacement).shape == (0, 4)
    wants = w.detach().requires_grad_()
    assert not vkml.multinomial(wants, 2, replacement).requires_grad


def test_frequencies_with_replacement(device):
    """Chi-squared of 5 categories, 20 draws each of 5000: beyond 27 once in 10^5."""
    p = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    n = 100_000
    got = vkml.multinomial(vkml.tensor(p * 3, device=device), n, True, seed=1)
    counts = np.bincount(to_numpy(got), minlength=5)
    assert counts[4] == 0
    chi = ((counts[:4] - n * p[:4]) ** 2 / (n * p[:4])).sum()
    assert 0.01 < chi < 27, counts


def test_frequencies_without_replacement(device):
    """All ordered pairs of 4, each with w_i / sum * w_j / (sum - w_i)."""
    p = np.array([0.4, 0.3, 0.2, 0.1])
    n = 60_000
    rows = vkml.tensor(np.broadcast_to(p, (n, 4)).copy(), device=device)
    got = to_numpy(vkml.multinomial(rows, 2, seed=3)).astype(np.int64)
    counts = np.bincount(got[:, 0] * 4 + got[:, 1], minlength=16).reshape(4, 4)
    wanted = n * p[:, None] * p[None] / (1 - p[:, None])
    off = ~np.eye(4, dtype=bool)
    assert (counts[~off] == 0).all()
    chi = ((counts - wanted)[off] ** 2 / wanted[off]).sum()
    assert 0.5 < chi < 45, counts  # 11 degrees of freedom


def test_the_default_generator(device):
    w = vkml.ones(50, device=device)
    vkml.manual_seed(5)
    a, b = vkml.multinomial(w, 20).tolist(), vkml.multinomial(w, 20).tolist()
    assert a != b
    vkml.manual_seed(5)
    assert vkml.multinomial(w, 20).tolist() == a
    assert a == vkml.multinomial(w, 20, seed=5, offset=0).tolist()


def test_a_captured_draw_is_a_new_one(vulkan):
    w, out = vkml.ones(50, device=vulkan), []

    def draw():
        out.append(vkml.multinomial(w, 20, True))

    captured = vkml.capture(draw, device=vulkan)
    first = out[-1].tolist()
    captured.replay()
    assert out[-1].tolist() != first


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), -float("inf"), -1e-45])
def test_bad_weights(device, replacement, bad):
    w = vkml.ones((3, 4), device=device).clone()
    w[1, 2] = bad
    with pytest.raises(vkml.ShapeError, match=r"^multinomial: expected finite weights >= 0 in every row.* row 1$"):
        vkml.multinomial(w, 2, replacement).tolist()


def test_too_few_weights_above_0(device):
    w = vkml.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]], device=device)
    assert vkml.multinomial(w, 5, True).shape == (2, 5)
    with pytest.raises(vkml.ShapeError, match=r"at least 2 of them above 0, got others in row 1$"):
        vkml.multinomial(w, 2).tolist()
    for replacement in (False, True):
        with pytest.raises(vkml.ShapeError, match=r"at least 1 of them above 0, got others in row 0$"):
            vkml.multinomial(w * 0, 1, replacement).tolist()


def test_errors():
    w = vkml.ones(3)
    for call, kind, text in (
        (
            lambda: vkml.multinomial(vkml.tensor([1, 2]), 1),
            vkml.DTypeError,
            "expected floating-point weights, got int64",
        ),
        (lambda: vkml.multinomial(vkml.ones(1, 2, 3), 1), vkml.ShapeError, r"expected rank 1 or 2, got \(1, 2, 3\)"),
        (lambda: vkml.multinomial(vkml.tensor(1.0), 1), vkml.ShapeError, r"expected rank 1 or 2, got \(\)"),
        (lambda: vkml.multinomial(w, 0), vkml.ShapeError, "num_samples: expected a number from 1 to 4294967295, got 0"),
        (lambda: vkml.multinomial(w, 4), vkml.ShapeError, "num_samples: expected at most 3 without replacement, got 4"),
        (lambda: vkml.multinomial(w[:0], 1), vkml.ShapeError, "expected 1 to 16777216 weights in a row, got 0"),
        (lambda: vkml.multinomial([1.0], 1), vkml.DTypeError, "input: expected a Tensor, got list"),
        (lambda: vkml.multinomial(w, 1.5), vkml.DTypeError, "num_samples: expected an int, got float"),
    ):
        with pytest.raises(kind, match=f"^multinomial: {text}"):
            call()

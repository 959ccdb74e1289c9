"""batch_norm with given statistics, batch_norm_train with the batch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, assert_same_bits, assert_within, tensor, to_numpy
from op_cases import Tolerance, bench, op_cases

import vkml


def channels(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return t.reshape(1, -1, *[1] * (x.ndim - 2))


def np_batch_norm(x: np.ndarray, mean: np.ndarray, variance: np.ndarray, *affine: np.ndarray) -> np.ndarray:
    y = (x - channels(x, mean)) / np.sqrt(channels(x, variance) + 1e-5)
    return y * channels(x, affine[0]) + channels(x, affine[1]) if affine else y


def np_batch_norm_train(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    axes = (0, *range(2, x.ndim))
    mean, variance = x.mean(axes), x.var(axes)
    return np_batch_norm(x, mean, variance, weight, bias), mean, variance


def torch_batch_norm(torch: Any, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
    """torch's own for values and three gradients; it refuses statistics that require one, so theirs are composed."""
    y = torch.nn.functional.batch_norm(x, mean.detach(), variance.detach(), weight, bias, False, 0.0, 1e-5)
    m, v, w = (t.reshape(1, -1, *[1] * (x.ndim - 2)) for t in (mean, variance, weight.detach()))
    composed = (x.detach() - m) * torch.rsqrt(v + 1e-5) * w
    return y + (composed - composed.detach())


def torch_batch_norm_train(torch: Any, x: Any, weight: Any, bias: Any) -> tuple[Any, ...]:
    axes = (0, *range(2, x.ndim))
    y = torch.nn.functional.batch_norm(x, None, None, weight, bias, True, 0.0, 1e-5)
    return y, x.mean(axes), x.var(axes, correction=0)


def zeros(shape: tuple, device: str) -> vkml.Tensor:
    return tensor(np.zeros(shape), "float32", device)


C3 = ((3,), (3,))
IMAGE, IMAGE_BYTES = ((64, 64, 56, 56), (64,), (64,)), 64 * 64 * 56 * 56 * 4
ERRORS = [
    (
        lambda d: vkml.batch_norm(zeros((2, 3), d), zeros((4,), d), zeros((3,), d)),
        "ShapeError",
        r"^batch_norm: mean: expected shape \(3,\), got \(4,\)$",
    ),
    (
        lambda d: vkml.batch_norm(zeros((3,), d), zeros((3,), d), zeros((3,), d)),
        "ShapeError",
        r"^batch_norm: expected rank >= 2, got \(3,\)$",
    ),
    (
        lambda d: vkml.batch_norm_train(zeros((1, 3), d)),
        "ShapeError",
        r"expected more than one value per channel, got \(1, 3\)$",
    ),
]
DOMAIN = [(-3.0, 3.0), (-1.0, 1.0), (0.5, 2.0), (-2.0, 2.0), (-2.0, 2.0)]
TestBatchNorm = op_cases(
    "batch_norm",
    np_batch_norm,
    torch=torch_batch_norm,
    domain=DOMAIN,
    second=True,
    errors=ERRORS,
    shapes=[(s, *C3, *C3) for s in ((2, 3), (4, 3, 5), (2, 3, 4, 5), (0, 3, 2), (1, 3, 2, 2, 2))],
    tolerance=Tolerance(row=2e-6),
    grad_tolerance=3e-5,
    layouts=("transposed", "rotated", "offset"),
)
# The statistics come back in f32 from 16-bit input, so only the wide dtypes fit one declaration.
TestBatchNormTrain = op_cases(
    "batch_norm_train",
    np_batch_norm_train,
    torch=torch_batch_norm_train,
    dtypes=("float32", "float64"),
    second=True,
    shapes=[((4, 3), *C3), ((2, 3, 4), *C3), ((3, 3, 2, 5), *C3)],
    tolerance=Tolerance(row=3e-6),
    grad_tolerance=1e-4,
    # The statistics are needed before the first result: x is read twice, and so are x and g on the way back.
    # A mean near 0 cancels from inputs of up to 3. Training differentiates the normalised images only.
    bench=[
        bench(*IMAGE, bytes=3.0 * IMAGE_BYTES, scale=3.0),
        bench(*IMAGE, backward=True, bytes=5.0 * IMAGE_BYTES, outputs=1),
        bench(*IMAGE, dtype="bfloat16", bytes=1.5 * IMAGE_BYTES, scale=3.0),
        bench(*IMAGE, dtype="bfloat16", backward=True, bytes=2.5 * IMAGE_BYTES, outputs=1),
    ],
)


def test_large_mean_small_spread(device: str, rng: np.random.Generator) -> None:
    held = to_numpy(tensor(1e4 + 1e-2 * rng.normal(0, 1, (10, 2, 250, 200)), "float32"))
    y, mean, variance = vkml.batch_norm_train(tensor(held, "float32", device))
    exact = held.var((0, 2, 3))
    assert_close(variance, exact, rtol=1e-5)
    assert_close(mean, held.mean((0, 2, 3)), rtol=1e-7)
    expected = (held - channels(held, held.mean((0, 2, 3)))) / np.sqrt(channels(held, exact) + 1e-5)
    assert_within(to_numpy(y), expected, 1e-5 * np.abs(expected).max())


def test_negative_or_nan_variance_spoils_its_channel_only(device: str) -> None:
    x = tensor(np.arange(12.0).reshape(2, 3, 2), "float32", device)
    y = to_numpy(vkml.batch_norm(x, zeros((3,), device), tensor([1, -1, float("nan")], "float32", device)))
    assert np.isfinite(y[:, 0]).all() and np.isnan(y[:, 1:]).all()


def test_16_bit_input_with_float_statistics(device: str, rng: np.random.Generator) -> None:
    for dtype, unit in (("float16", 2.0**-10), ("bfloat16", 2.0**-7)):
        x = tensor(rng.normal(0, 1, (4, 3, 5)), dtype, device)
        stats = [
            tensor(v, "float32", device) for v in ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [1.5, 0.5, -1.0], [0.0, 1.0, -1.0])
        ]
        y = vkml.batch_norm(x, *stats)
        assert y.dtype == x.dtype
        expected = np_batch_norm(to_numpy(x), *map(to_numpy, stats))
        assert_within(to_numpy(y), expected, unit * np.abs(expected) + 1e-5)


SIZES = (1, 2, 3, 4, 31, 33, 63, 65, 127, 1025, 4099)


def cases() -> list[tuple[int, ...]]:
    """Planes that are and are not multiples of four; one, few and many channels; enough elements for several parts."""
    planes = [(2, 3, n) for n in SIZES] + [(n, 2) for n in SIZES if n > 1] + [(3, n, 5) for n in SIZES[:9]]
    return [*planes, *((n, 4, 6, 6) for n in SIZES[1:9]), (5, 2, 64, 66), (2, 1, 128, 129), (40, 3, 8, 8)]


def test_enough_cases() -> None:
    assert len(cases()) >= 40


@pytest.mark.parametrize("shape", cases(), ids=str)
def test_training_against_torch(device: str, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng([*shape])
    arrays = [rng.normal(3, 2, shape), rng.normal(0, 1, shape[1]), rng.normal(0, 1, shape[1])]
    seed = rng.normal(0, 1, shape)
    held = [to_numpy(tensor(a, "float32")) for a in (*arrays, seed)]
    results = []
    for _ in range(2):
        leaves = [tensor(a, "float32", device, requires_grad=True) for a in arrays]
        y, mean, variance = vkml.batch_norm_train(*leaves)
        y.backward(tensor(seed, "float32", device))
        results.append([t.detach() for t in (y, mean, variance)] + [leaf.grad for leaf in leaves])
    for first, again in zip(*results, strict=True):
        assert_same_bits(first, again)
    theirs = [torch.from_numpy(a).requires_grad_() for a in held[:3]]
    y = torch.nn.functional.batch_norm(theirs[0], None, None, theirs[1], theirs[2], True)
    y.backward(torch.from_numpy(held[3]))
    axes = (0, *range(2, len(shape)))
    spread = held[0].std(axes)  # a gradient is a difference of terms of the size of g / spread
    largest = np.abs(held[3]).max() * np.abs(held[1]).max() / max(spread.min(), 1e-3)
    expected = [y, held[0].mean(axes), held[0].var(axes), *(t.grad for t in theirs)]
    count = held[0].size / shape[1]
    limits = [3e-5, 3e-6, 3e-6, 3e-6 * largest, 3e-6 * count**0.5 * 10, 3e-6 * count**0.5 * 10]
    for got, e, limit in zip(results[0], expected, limits, strict=True):
        e = e.detach().numpy() if hasattr(e, "detach") else e
        assert np.abs(to_numpy(got) - e).max() <= limit * max(1.0, np.abs(e).max())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_layouts_give_the_bits_of_their_copies(device: str, dtype: str, rng: np.random.Generator) -> None:
    wide = tensor(rng.normal(0, 1, (4, 6, 9, 12)), dtype, device)
    affine = [tensor(rng.normal(0, 1, 6), dtype, device) for _ in range(2)]
    for x in (wide.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), wide[:, :, 1::2], wide[1:, :, :, 3:11]):
        assert not x.is_contiguous()
        for got, packed in zip(
            vkml.batch_norm_train(x, *affine), vkml.batch_norm_train(x.contiguous(), *affine), strict=True
        ):
            close = 1e-5 if dtype in ("float32", "float64") else 2.0**-7
            assert_within(to_numpy(got), to_numpy(packed), close * np.abs(to_numpy(packed)).max())
        mean, variance = (t.to(dtype=dtype) for t in vkml.batch_norm_train(x, *affine)[1:])
        assert_same_bits(
            vkml.batch_norm(x, mean, variance, *affine), vkml.batch_norm(x.contiguous(), mean, variance, *affine)
        )


def test_gradients_of_the_statistics(device: str, rng: np.random.Generator) -> None:
    """Through mean and variance alone, and beside y: the composed form, against its definition."""
    held = rng.normal(1, 2, (3, 2, 5))
    gm, gv = rng.normal(0, 1, 2), rng.normal(0, 1, 2)
    x = tensor(held, "float64", device, requires_grad=True)
    _, mean, variance = vkml.batch_norm_train(x)
    ((mean * tensor(gm, "float64", device)).sum() + (variance * tensor(gv, "float64", device)).sum()).backward()
    centred = held - channels(held, held.mean((0, 2)))
    assert_within(to_numpy(x.grad), channels(held, gm) / 15 + channels(held, gv) * 2 * centred / 15, 1e-13)

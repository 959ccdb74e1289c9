"""max_pool2d and avg_pool2d against loops over windows in float64."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import FLOATS, INTEGERS, tensor, to_numpy
from op_cases import EXACT, Tolerance, bench, op_cases

import vkml


def pair(v) -> tuple[int, int]:
    return v if isinstance(v, tuple) else (v, v)


def count(extent: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    q = extent + 2 * p - d * (k - 1) - 1
    if not ceil_mode:
        return q // s + 1
    n = (q + s - 1) // s + 1
    return n - 1 if (n - 1) * s >= extent + p else n


def windows(x: np.ndarray, kernel, stride, padding, dilation, ceil_mode):
    """((y, x) of each output, the real elements of its window, its length clipped to the padded image)."""
    (kh, kw), (ph, pw), (dh, dw) = pair(kernel), pair(padding), pair(dilation)
    sh, sw = (s or k for s, k in zip(pair(stride), (kh, kw), strict=True))
    height, width = x.shape[2:]
    out_h, out_w = count(height, kh, sh, ph, dh, ceil_mode), count(width, kw, sw, pw, dw, ceil_mode)
    for y in range(out_h):
        for z in range(out_w):
            rows = [y * sh - ph + i * dh for i in range(kh)]
            columns = [z * sw - pw + j * dw for j in range(kw)]
            padded = sum(r < height + ph for r in rows) * sum(c < width + pw for c in columns)
            rows, columns = [r for r in rows if 0 <= r < height], [c for c in columns if 0 <= c < width]
            yield (out_h, out_w), (y, z), x[:, :, rows][:, :, :, columns], padded


def np_max(x: np.ndarray, kernel, stride=0, padding=0, dilation=1, ceil_mode=False) -> np.ndarray:
    out = None
    for size, at, window, _ in windows(x, kernel, stride, padding, dilation, ceil_mode):
        out = np.empty((*x.shape[:2], *size), x.dtype) if out is None else out
        out[:, :, at[0], at[1]] = window.max((2, 3))
    return out


def np_avg(
    x: np.ndarray, kernel, stride=0, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
) -> np.ndarray:
    out = None
    for size, at, window, padded in windows(x, kernel, stride, padding, 1, ceil_mode):
        out = np.empty((*x.shape[:2], *size)) if out is None else out
        real = window.shape[2] * window.shape[3]
        out[:, :, at[0], at[1]] = window.sum((2, 3)) / (divisor_override or (padded if count_include_pad else real))
    return out


def distinct(rng: np.random.Generator, *shapes, **_) -> list[np.ndarray]:
    """No ties, and gaps that finite differences do not cross."""
    return [rng.permutation(int(np.prod(s))).reshape(s) / 8.0 - 3 for s in shapes]


def stride_or_kernel(kernel, stride):
    return tuple(s or k for s, k in zip(pair(stride), pair(kernel), strict=True))


SHAPES = [(1, 1, 6, 6), (2, 3, 7, 9), (0, 2, 6, 6)]

TestMaxPool2d = op_cases(
    "max_pool2d",
    np_max,
    shapes=SHAPES,
    grad_shapes=[(1, 2, 6, 6)],
    dtypes=FLOATS,
    inputs=distinct,
    tolerance=EXACT,
    second=True,
    kernel=[2, (3, 2)],
    stride=[0, (2, 1)],
    padding=[0, 1],
    dilation=[1, (1, 2)],
    ceil_mode=[False, True],
    torch=lambda torch, x, kernel, stride=0, padding=0, dilation=1, ceil_mode=False: torch.nn.functional.max_pool2d(
        x, kernel, stride_or_kernel(kernel, stride), padding, dilation, ceil_mode
    ),
    errors=[
        (
            lambda d: vkml.max_pool2d(vkml.zeros((1, 1, 4, 4), device=d), 3, padding=2),
            "ShapeError",
            r"max_pool2d: padding: expected at most half the kernel \(1, 1\), got \(2, 2\)",
        ),
        (lambda d: vkml.max_pool2d(vkml.zeros((1, 1, 4, 4), device=d), 0), "ShapeError", "max_pool2d: kernel"),
        (lambda d: vkml.max_pool2d(vkml.zeros((1, 1, 4, 4), device=d), 2, -1), "ShapeError", "max_pool2d: stride"),
        (
            lambda d: vkml.max_pool2d(vkml.zeros((1, 1, 2, 2), device=d), 3),
            "ShapeError",
            "max_pool2d: expected an output",
        ),
        (
            lambda d: vkml.max_pool2d(vkml.zeros((1, 0, 4, 4), device=d), 2),
            "ShapeError",
            "max_pool2d: expected non-empty",
        ),
    ],
    bench=[
        bench((64, 64, 56, 56), kernel=2),
        bench((64, 64, 56, 56), kernel=2, dtype="bfloat16"),
        bench((64, 64, 112, 112), kernel=3, stride=2, padding=1),
        bench((64, 64, 56, 56), kernel=2, backward=True),
    ],
)

TestAvgPool2d = op_cases(
    "avg_pool2d",
    np_avg,
    shapes=SHAPES,
    grad_shapes=[(1, 2, 5, 6)],
    dtypes=FLOATS,
    tolerance=Tolerance(rel=1e-6, abs=1e-6),
    second=True,
    kernel=[2, (3, 2)],
    stride=[0, (2, 1)],
    padding=[0, 1],
    ceil_mode=[False, True],
    count_include_pad=[True, False],
    torch=lambda torch, x, kernel, stride=0, padding=0, ceil_mode=False, count_include_pad=True: (
        torch.nn.functional.avg_pool2d(
            x, kernel, stride_or_kernel(kernel, stride), padding, ceil_mode, count_include_pad
        )
    ),
    errors=[
        (
            lambda d: vkml.avg_pool2d(vkml.zeros((1, 1, 4, 4), device=d), 2, divisor_override=0),
            "ShapeError",
            "avg_pool2d: divisor_override",
        ),
        (
            lambda d: vkml.avg_pool2d(vkml.zeros((1, 1, 4, 4), dtype="int64", device=d), 2),
            "DTypeError",
            "avg_pool2d: expected a floating",
        ),
    ],
    bench=[
        bench((64, 64, 56, 56), kernel=2),
        bench((64, 64, 56, 56), kernel=2, dtype="bfloat16"),
        bench((64, 64, 112, 112), kernel=3, stride=2, padding=1),
        bench((64, 64, 56, 56), kernel=2, backward=True),
    ],
)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_max_of_integers(device: str, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0 if dtype == "uint8" else -100, 100, (2, 2, 5, 6)).astype(dtype)
    got = vkml.max_pool2d(vkml.tensor(x, device=device), 3, 2, 1).numpy()
    assert np.array_equal(got, np_max(x, 3, 2, 1))


def test_max_example_and_indices(device: str) -> None:
    x = tensor(np.arange(16.0).reshape(1, 1, 4, 4), device=device)
    values, indices = vkml.max_pool2d_with_indices(x, [2, 2], [2, 2])
    assert values.tolist() == [[[[5, 7], [13, 15]]]] and indices.tolist() == [[[[5, 7], [13, 15]]]]
    assert vkml.avg_pool2d(x, [2, 2], [2, 2]).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]


def test_nan_wins_and_takes_the_gradient(device: str) -> None:
    for window, last in ([[[1, np.nan], [2, 3]], 1], [[[np.nan, 1], [np.nan, 2]], 2], [[[np.nan] * 2] * 2, 3]):
        x = tensor(np.array([[window]]), device=device, requires_grad=True)
        out = vkml.max_pool2d(x, 2)
        assert np.isnan(to_numpy(out)).all()
        out.backward(vkml.ones((1, 1, 1, 1), device=device))
        assert to_numpy(x.grad).ravel().tolist() == [float(i == last) for i in range(4)]


def test_ties_go_to_the_first(device: str) -> None:
    x = vkml.ones((1, 1, 3, 3), device=device).requires_grad_()
    vkml.max_pool2d(x, 2, 1).backward(vkml.ones((1, 1, 2, 2), device=device))
    assert x.grad.tolist() == [[[[1, 1, 0], [1, 1, 0], [0, 0, 0]]]]


def test_padding_is_less_than_anything(device: str) -> None:
    assert to_numpy(vkml.max_pool2d(tensor(np.full((1, 1, 2, 2), -5.0), device=device), 2, 1, 1)).max() == -5


def test_avg_known_values(device: str) -> None:
    ones = vkml.ones((1, 1, 6, 6), device=device)
    out = to_numpy(vkml.avg_pool2d(ones, 3, 2, 1, ceil_mode=True))[0, 0]
    assert np.allclose(
        out, [[4 / 9, 2 / 3, 2 / 3, 1 / 3], [2 / 3, 1, 1, 1 / 2], [2 / 3, 1, 1, 1 / 2], [1 / 3, 1 / 2, 1 / 2, 1 / 4]]
    )
    assert (to_numpy(vkml.avg_pool2d(ones, 3, 2, 1, ceil_mode=True, count_include_pad=False)) == 1).all()
    row = tensor(np.arange(1.0, 6).reshape(1, 1, 1, 5), device=device)
    assert vkml.avg_pool2d(row, (1, 2), (1, 2), ceil_mode=True).tolist() == [[[[1.5, 3.5, 5]]]]
    x = vkml.ones((1, 1, 3, 3), device=device).requires_grad_()
    vkml.avg_pool2d(x, 2, 1).backward(vkml.ones((1, 1, 2, 2), device=device))
    assert x.grad.tolist() == [[[[0.25, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 0.25]]]]


@pytest.mark.parametrize(("size", "out"), [((6, 7), (3, 4)), ((4, 6), (2, 3)), ((32, 32), (16, 16))])
def test_ceil_sizes(device: str, size: tuple[int, int], out: tuple[int, int]) -> None:
    assert vkml.max_pool2d(vkml.ones((1, 1, *size), device=device), 1, 2, ceil_mode=True).shape == (1, 1, *out)


def test_divisor_override(device: str) -> None:
    assert vkml.avg_pool2d(vkml.ones((1, 1, 2, 2), device=device), 2, divisor_override=8).item() == 0.5


# Lines whose length is a multiple of four are read and written in vectors: (size, kernel, stride, padding, dilation)
LINES = [
    ((8, 8), 2, 2, 0, 1),
    ((5, 12), 3, 2, 1, 1),
    ((7, 64), 3, 1, 1, 1),
    ((9, 16), (2, 5), (1, 2), (1, 2), 1),
    ((6, 20), (3, 2), (3, 4), (0, 1), (1, 3)),
    ((4, 8), (2, 7), 1, (1, 3), 1),
    ((3, 128), (1, 7), (1, 4), (0, 3), 1),  # five vectors to a line of windows would not do
    ((8, 16), 4, 5, 2, 1),
    ((8, 4), 1, 1, 0, 1),
    ((1, 4), (1, 2), 2, 0, 1),
    ((31, 33), 3, 2, 1, 1),
    ((127, 65), 2, 2, 1, 1),
    ((63, 2), (2, 1), (1, 1), 0, 1),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"), LINES)
def test_lines_of_every_alignment(device: str, dtype: str, size, kernel, stride, padding, dilation) -> None:
    """Packed, stepped, permuted and sliced images against loops; indices point at the maxima; NaN among them."""
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((2, 5, size[0], size[1] + 4))
    wide[0, 0, 0, :3], wide[1, 2] = np.nan, -np.inf
    whole = tensor(wide, dtype, device)
    views = {
        "sliced": whole[:, 1:4, :, 4:],
        "shifted": whole[:, :, :, 1 : size[1] + 1],
        "permuted": whole[:, :, :, :-4].permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1),
    }
    for x in (*views.values(), views["sliced"].contiguous()):
        held = to_numpy(x)
        values, indices = vkml.max_pool2d_with_indices(x, kernel, stride, padding, dilation)
        expected = np_max(held, kernel, stride, padding, dilation)
        assert np.array_equal(to_numpy(values), expected, equal_nan=True)
        planes = held.reshape(*held.shape[:2], -1)
        at = indices.numpy().reshape(*held.shape[:2], -1)
        picked = np.take_along_axis(planes, at, 2).reshape(expected.shape)
        assert np.array_equal(picked, expected, equal_nan=True)
        assert np.array_equal(to_numpy(vkml.max_pool2d(x, kernel, stride, padding, dilation)), expected, equal_nan=True)
        if dilation != 1 or np.isnan(held).any() or np.isinf(held).any():
            continue
        for count_include_pad in (True, False):
            got = to_numpy(vkml.avg_pool2d(x, kernel, stride, padding, count_include_pad=count_include_pad))
            exact = np_avg(held, kernel, stride, padding, count_include_pad=count_include_pad)
            unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 0.0)
            assert (np.abs(got - exact) <= unit * np.abs(exact) + 1e-5).all()


@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation"), LINES)
def test_gradients_of_lines(device: str, size, kernel, stride, padding, dilation) -> None:
    """Every gradient lands where the indices say, or is spread by the divisors: exact in small integers and halves."""
    rng = np.random.default_rng(1)
    x = tensor(rng.permutation(6 * size[0] * size[1]).reshape(2, 3, *size) / 4.0, "float64", device, requires_grad=True)
    out, indices = vkml.max_pool2d_with_indices(x, kernel, stride, padding, dilation)
    g = rng.integers(-8, 9, out.shape).astype(float)
    out.backward(tensor(g, "float64", device))
    expected = np.zeros((2, 3, size[0] * size[1]))
    for n in range(2):
        for c in range(3):
            np.add.at(expected[n, c], indices.numpy()[n, c].ravel(), g[n, c].ravel())
    assert np.array_equal(to_numpy(x.grad).reshape(expected.shape), expected)
    if dilation != 1:
        return
    leaf = tensor(to_numpy(x), "float32", device, requires_grad=True)
    vkml.avg_pool2d(leaf, kernel, stride, padding).backward(tensor(g, "float32", device))
    direction = rng.standard_normal(leaf.shape)
    inner = (np_avg(direction, kernel, stride, padding) * g).sum()
    assert abs((to_numpy(leaf.grad) * direction).sum() - inner) <= 1e-5 * np.abs(g).sum()

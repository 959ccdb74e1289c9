"""im2col and col2im: values against NumPy, and each as the other's transpose."""

from __future__ import annotations

import numpy as np
from helpers import ALL, FLOATS, tensor
from op_cases import EXACT, Tolerance, bench, op_cases

import vkml


def windows(x: np.ndarray, kernel, stride=1, padding=0, dilation=1) -> np.ndarray:
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = (
        v if isinstance(v, tuple) else (v, v) for v in (kernel, stride, padding, dilation)
    )
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out_h, out_w = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    taps = [
        x[:, :, i * dh : i * dh + (out_h - 1) * sh + 1 : sh, j * dw : j * dw + (out_w - 1) * sw + 1 : sw]
        for i in range(kh)
        for j in range(kw)
    ]
    return np.stack(taps, 2).reshape(x.shape[0], x.shape[1] * kh * kw, out_h * out_w)


def scattered(cols: np.ndarray, image, kernel, stride=1, padding=0, dilation=1) -> np.ndarray:
    """The transpose of windows(), column by column."""
    taps = np.prod(kernel if isinstance(kernel, tuple) else (kernel, kernel))
    shape = (1, cols.shape[1] // int(taps), *image)
    index = windows(np.arange(1, np.prod(shape) + 1).reshape(shape), kernel, stride, padding, dilation)[0]
    out = np.zeros((cols.shape[0], int(np.prod(shape)) + 1))
    for n in range(cols.shape[0]):
        np.add.at(out[n], index.ravel(), cols[n].ravel())
    return out[:, 1:].reshape(cols.shape[0], *shape[1:])


def torch_unfold(torch, x, kernel, stride, padding, dilation):
    """torch's own takes floats only."""
    wide = x if x.dtype.is_floating_point else x.double()
    return torch.nn.functional.unfold(wide, kernel, dilation=dilation, padding=padding, stride=stride).to(x.dtype)


TestIm2col = op_cases(
    "im2col",
    windows,
    shapes=[(1, 1, 5, 4), (2, 3, 7, 6), (0, 2, 5, 5)],
    grad_shapes=[(1, 1, 5, 4), (2, 2, 5, 5)],
    dtypes=ALL,
    tolerance=EXACT,
    second=False,
    kernel=[2, (3, 2)],
    stride=[1, (2, 3)],
    padding=[0, (1, 2)],
    dilation=[1, (2, 1)],
    bench=[bench((16, 64, 56, 56), kernel=3, stride=1, padding=1, dilation=1)],
    torch=torch_unfold,
    errors=[
        (
            lambda d: vkml.im2col(vkml.zeros((2, 3), device=d), 2),
            "ShapeError",
            r"im2col: expected rank 4, got \(2, 3\)",
        ),
        (
            lambda d: vkml.im2col(vkml.zeros((1, 1, 2, 2), device=d), 3),
            "ShapeError",
            r"im2col: expected a kernel no larger than the padded input \(2, 2\), got \(3, 3\)",
        ),
        (
            lambda d: vkml.im2col(vkml.zeros((1, 1, 2, 2), device=d), 1, stride=0),
            "ShapeError",
            r"im2col: stride: expected sizes >= 1, got \(0, 0\)",
        ),
    ],
)

TestCol2im = op_cases(
    "col2im",
    scattered,
    shapes=[(1, 4, 4), (2, 12, 4)],
    dtypes=FLOATS,
    tolerance=Tolerance(rel=4e-7, abs=4e-6),
    image=[(3, 3)],
    kernel=[2],
    bench=[bench((16, 576, 2916), image=(56, 56), kernel=3)],
    gradients=True,
    batched=True,
)


def test_known_values(device: str) -> None:
    rows = vkml.im2col(tensor(np.arange(9.0).reshape(1, 1, 3, 3), device=device), 2)
    assert rows.tolist() == [[[0, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]]
    back = vkml.col2im(vkml.ones((1, 4, 4), device=device), (3, 3), 2)
    assert back.tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]


def test_col2im_is_the_transpose(device: str) -> None:
    rng = np.random.default_rng(1)
    for kernel, stride, padding, dilation in [
        ((3, 2), (2, 1), (1, 0), (1, 2)),
        ((2, 3), (3, 2), (2, 1), (2, 1)),
        ((1, 1), (2, 2), (0, 0), (1, 1)),
    ]:
        x = rng.integers(-5, 5, (2, 3, 8, 7)).astype(np.float64)
        cols = windows(x, kernel, stride, padding, dilation)
        y = rng.integers(-5, 5, cols.shape).astype(np.float64)
        back = vkml.col2im(tensor(y, device=device), (8, 7), kernel, stride, padding, dilation).numpy()
        assert np.array_equal(back, scattered(y, (8, 7), kernel, stride, padding, dilation))
        assert (back * x).sum() == (cols * y).sum()


def test_no_channels(device: str) -> None:
    assert vkml.im2col(vkml.zeros((2, 0, 5, 5), device=device), 2).shape == (2, 0, 16)
    assert vkml.col2im(vkml.zeros((2, 0, 16), device=device), 5, 2).shape == (2, 0, 5, 5)

"""conv2d against direct loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import FLOATS, assert_same_bits, assert_within, tensor, to_numpy
from op_cases import Bench, Tolerance, bench, op_cases

import vkml


def np_conv2d(x: np.ndarray, w: np.ndarray, *bias: np.ndarray, stride=1, padding=0, dilation=1, groups=1) -> np.ndarray:
    (sh, sw), (ph, pw), (dh, dw) = (v if isinstance(v, (tuple, list)) else (v, v) for v in (stride, padding, dilation))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    kh, kw = w.shape[2:]
    out_h, out_w = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1, (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    out = np.zeros((x.shape[0], w.shape[0], out_h, out_w))
    ins, outs = x.shape[1] // groups, w.shape[0] // groups
    for g in range(groups):
        for i in range(kh):
            for j in range(kw):
                tap = x[
                    :,
                    g * ins : (g + 1) * ins,
                    i * dh : i * dh + (out_h - 1) * sh + 1 : sh,
                    j * dw : j * dw + (out_w - 1) * sw + 1 : sw,
                ]
                out[:, g * outs : (g + 1) * outs] += np.einsum(
                    "nchw,oc->nohw", tap, w[g * outs : (g + 1) * outs, :, i, j]
                )
    return out + (bias[0][:, None, None] if bias else 0)


def conv_bound(eps: float, x: np.ndarray, w: np.ndarray, *bias: np.ndarray, **options) -> np.ndarray:
    k = np.prod(w.shape[1:])
    total = np_conv2d(np.abs(x), np.abs(w), *(np.abs(b) for b in bias), **options)
    return (k / 32 + np.log2(max(k, 1)) + 33) * eps * total + 1e-300


def conv_benches(dtype: str) -> list[Bench]:
    """3x3, 1x1, strided, wide and depthwise; forward, then both gradients. Depthwise is counted in bytes."""
    image, cases = (64, 64, 56, 56), []
    for w, options in [
        ((64, 64, 3, 3), {"padding": 1}),
        ((64, 64, 1, 1), {}),
        ((256, 64, 1, 1), {}),
        ((128, 64, 3, 3), {"padding": 1, "stride": 2}),
        ((64, 1, 3, 3), {"padding": 1, "groups": 64}),
    ]:
        pixels = 64 * 56 * 56 // options.get("stride", 1) ** 2
        flops = None if "groups" in options else 2.0 * pixels * np.prod(w)
        cases.append(bench(image, w, dtype=dtype, flops=flops, **options))
        cases.append(bench(image, w, dtype=dtype, flops=flops and 2 * flops, backward=True, **options))
    flops = 2.0 * 64 * 14 * 14 * 256 * 256 * 9
    cases.append(bench((64, 256, 14, 14), (256, 256, 3, 3), dtype=dtype, flops=flops, padding=1))
    cases.append(bench((64, 256, 14, 14), (256, 256, 3, 3), dtype=dtype, flops=2 * flops, backward=True, padding=1))
    return cases


TestConv2d = op_cases(
    "conv2d",
    np_conv2d,
    torch="conv2d",
    shapes=[
        ((2, 3, 6, 7), (4, 3, 3, 2)),
        ((1, 3, 5, 5), (2, 3, 1, 1), (2,)),
        ((0, 3, 6, 6), (4, 3, 3, 3)),
        ((2, 3, 9, 8), (5, 3, 3, 3), (5,)),
    ],
    dtypes=["float32", "float64"],
    tolerance=Tolerance(bound=conv_bound),
    second=True,
    grad_shapes=[((2, 2, 5, 4), (3, 2, 3, 2)), ((1, 2, 5, 5), (2, 2, 1, 1), (2,))],
    stride=[1, (2, 3)],
    padding=[0, (1, 2)],
    dilation=[1, (2, 1)],
    errors=[
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((16, 27), device=d)),
            "ShapeError",
            r"conv2d: weight: expected rank 4, got \(16, 27\)",
        ),
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((4, 1, 3, 3), device=d)),
            "ShapeError",
            r"conv2d: weight: expected 3 input channels \(3 / groups 1\), got 1",
        ),
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((4, 1, 3, 3), device=d), groups=2),
            "ShapeError",
            "conv2d: groups: expected a divisor of 3 and 4, got 2",
        ),
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 2, 2), device=d), vkml.zeros((4, 3, 3, 3), device=d)),
            "ShapeError",
            r"conv2d: expected a kernel no larger than the padded input \(2, 2\), got \(3, 3\)",
        ),
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((4, 3, 3, 3), device=d), padding=-1),
            "ShapeError",
            r"conv2d: padding: expected sizes >= 0, got \(-1, -1\)",
        ),
        (
            lambda d: vkml.conv2d(vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((0, 3, 3, 3), device=d)),
            "ShapeError",
            r"conv2d: weight: expected at least 1 output channel, got \(0, 3, 3, 3\)",
        ),
        (
            lambda d: vkml.conv2d(
                vkml.zeros((1, 3, 4, 4), device=d), vkml.zeros((4, 3, 3, 3), dtype="float16", device=d)
            ),
            "DTypeError",
            "conv2d: weight: expected float32, got float16",
        ),
    ],
    bench=[case for dtype in ("float32", "bfloat16") for case in conv_benches(dtype)],
)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dtype", FLOATS)
def test_groups(device: str, dtype: str, groups: int) -> None:
    rng = np.random.default_rng(groups)
    x, w = (
        rng.integers(-3, 4, (2, 4, 7, 6)).astype(np.float64),
        rng.integers(-3, 4, (8, 4 // groups, 3, 2)).astype(np.float64),
    )
    options = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": groups}
    got = vkml.conv2d(tensor(x, dtype, device), tensor(w, dtype, device), None, **options)
    expected = np_conv2d(x, w, **options)  # sums of small integers: exact in every dtype below 256
    assert np.abs(expected).max() < 256
    assert np.array_equal(to_numpy(got), expected)


def test_ones_and_their_gradient(device: str) -> None:
    x = vkml.ones((1, 1, 16, 16), device=device).requires_grad_()
    out = vkml.conv2d(x, vkml.ones((1, 1, 7, 7), device=device), stride=3, padding=2)
    assert out.shape == (1, 1, 5, 5) and out.detach().numpy()[0, 0, 0].tolist() == [25, 35, 35, 35, 30]
    out.backward(vkml.ones((1, 1, 5, 5), device=device))
    assert x.grad.numpy().sum() == 1024 and x.grad.numpy()[0, 0, 15, 15] == 1


@pytest.mark.parametrize("groups", [1, 3])
def test_gradients_of_groups(device: str, groups: int) -> None:
    """d loss / d input and d weight are linear in the output's gradient: checked as inner products with directions."""
    rng = np.random.default_rng(groups)
    x, w = rng.integers(-3, 4, (2, 3, 6, 5)).astype(float), rng.integers(-3, 4, (6, 3 // groups, 2, 3)).astype(float)
    options = {"stride": (2, 1), "padding": (1, 1), "dilation": (1, 2), "groups": groups}
    g = rng.integers(-3, 4, np_conv2d(x, w, **options).shape).astype(float)
    leaves = [tensor(a, device=device, requires_grad=True) for a in (x, w)]
    vkml.conv2d(*leaves, **options).backward(tensor(g, device=device))
    dx, dw = rng.integers(-3, 4, x.shape).astype(float), rng.integers(-3, 4, w.shape).astype(float)
    assert (to_numpy(leaves[0].grad) * dx).sum() == (np_conv2d(dx, w, **options) * g).sum()
    assert (to_numpy(leaves[1].grad) * dw).sum() == (np_conv2d(x, dw, **options) * g).sum()


def test_no_input_channels_leave_the_bias(device: str) -> None:
    bias = tensor(np.array([1.0, 2]), device=device)
    out = vkml.conv2d(vkml.zeros((1, 0, 4, 4), device=device), vkml.zeros((2, 0, 3, 3), device=device), bias)
    assert out.tolist() == [[[[1, 1], [1, 1]], [[2, 2], [2, 2]]]]


def test_infinite_weight_over_padding(device: str) -> None:
    w = np.ones((1, 1, 3, 3))
    w[0, 0, 0, 0] = np.inf
    out = to_numpy(vkml.conv2d(vkml.ones((1, 1, 3, 3), device=device), tensor(w, device=device), padding=1))[0, 0]
    assert np.isnan(out[0]).all() and np.isnan(out[:, 0]).all() and np.isposinf(out[1:, 1:]).all()


def test_exact_is_the_same_on_both_devices(vulkan: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5, 9, 8)), rng.standard_normal((7, 5, 3, 3))
    before = vkml.get_float32_matmul_precision()
    vkml.set_float32_matmul_precision("exact")
    try:
        on_cpu = vkml.conv2d(tensor(x), tensor(w), padding=1)
        there = vkml.conv2d(tensor(x, device=vulkan), tensor(w, device=vulkan), padding=1)
    finally:
        vkml.set_float32_matmul_precision(before)
    assert_same_bits(there.to("cpu"), on_cpu)
    assert_within(
        to_numpy(on_cpu), np_conv2d(tensor(x).numpy().astype(float), tensor(w).numpy().astype(float), padding=1), 1e-4
    )


@pytest.mark.parametrize(("kernel", "dilation"), [((3, 3), 1), ((2, 4), 1), ((1, 2), (1, 3)), ((4, 3), (1, 2))])
def test_padding_in_words(device: str, kernel: tuple[int, int], dilation: int | tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(-3, 4, (2, 3, 6, 7)).astype(float), rng.integers(-3, 4, (4, 3, *kernel)).astype(float)
    spread = dilation if isinstance(dilation, tuple) else (dilation, dilation)
    total = [d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
    padded = np.pad(x, ((0, 0), (0, 0), *((n // 2, n - n // 2) for n in total)))
    expected = np_conv2d(padded, w, dilation=dilation)
    leaves = [tensor(a, device=device, requires_grad=True) for a in (x, w)]
    same = vkml.conv2d(*leaves, padding="same", dilation=dilation)
    assert same.shape == (2, 4, 6, 7) and same.is_contiguous()
    assert np.array_equal(to_numpy(same), expected)
    g = rng.integers(-3, 4, expected.shape).astype(float)
    same.backward(tensor(g, device=device))
    dx, dw = rng.integers(-3, 4, x.shape).astype(float), rng.integers(-3, 4, w.shape).astype(float)
    moved = np.pad(dx, ((0, 0), (0, 0), *((n // 2, n - n // 2) for n in total)))
    assert (to_numpy(leaves[0].grad) * dx).sum() == (np_conv2d(moved, w, dilation=dilation) * g).sum()
    assert (to_numpy(leaves[1].grad) * dw).sum() == (np_conv2d(padded, dw, dilation=dilation) * g).sum()
    valid = vkml.conv2d(tensor(x, device=device), tensor(w, device=device), None, 2, "valid", dilation)
    assert np.array_equal(to_numpy(valid), np_conv2d(x, w, stride=2, dilation=dilation))


def test_padding_words_are_checked(device: str) -> None:
    x, w = vkml.zeros((1, 1, 4, 4), device=device), vkml.zeros((1, 1, 3, 3), device=device)
    with pytest.raises(vkml.ShapeError, match=r"^conv2d: padding: expected sizes, same or valid, got 'full'$"):
        vkml.conv2d(x, w, padding="full")
    with pytest.raises(vkml.ShapeError, match=r"^conv2d: stride: expected 1 where padding is same, got \(2, 1\)$"):
        vkml.conv2d(x, w, stride=(2, 1), padding="same")

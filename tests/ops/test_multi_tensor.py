"""Passes over many tensors: odd sizes, 16-bit and float64 elements, views that are not aligned, bad lists."""

import numpy as np
import pytest
from helpers import EPS, assert_close, rounded, tensor

import vkml
from vkml import _core

FLOATS = ["float32", "float16", "bfloat16", "float64"]
SIZES = [(1,), (3,), (4095,), (4096,), (4097,), (0,), (), (7, 11), (9001,)]


def some(rng, dtype, device, shapes=SIZES):
    values = [rounded(rng.standard_normal(s), dtype) for s in shapes]
    return values, [tensor(v, dtype, device) for v in values]


def number(value, dtype, device):
    return vkml.full((), value, dtype="float64" if dtype == "float64" else "float32", device=device)


@pytest.mark.parametrize("dtype", FLOATS)
def test_norm(device, rng, dtype):
    values, tensors = some(rng, dtype, device)
    norm = _core._multi_norm(tensors)
    wanted = np.sqrt(sum(float((v * v).sum()) for v in values))
    assert norm.shape == () and norm.dtype == ("float64" if dtype == "float64" else "float32")
    # 19,000 squares in sums of at most 32 + 7 + 5 terms one after the other; the root halves the error.
    assert_close(norm, np.array(wanted), rtol=22 * EPS[str(norm.dtype)])
    assert norm.item() == _core._multi_norm(tensors).item()


def test_norm_of_nothing(device):
    assert _core._multi_norm([vkml.zeros(0, device=device)]).item() == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_scale(device, rng, dtype):
    values, tensors = some(rng, dtype, device)
    found = vkml.zeros(1, dtype="int32", device=device)
    _core._multi_scale_(tensors, number(0.37, dtype, device), found)
    factor = 0.37 if dtype == "float64" else np.float64(np.float32(0.37))
    for v, t in zip(values, tensors, strict=True):
        assert_close(t, v * factor, rtol=EPS[dtype], atol=2.0**-24 if dtype == "float16" else 0)
    assert found.tolist() == [0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_scale_finds_what_is_not_finite(device, rng, dtype, bad):
    for where in ((3, 4094), (4, 4096), (7, 76)):
        values, _ = some(rng, dtype, device)
        values[where[0]].reshape(-1)[where[1]] = bad
        found = vkml.zeros(1, dtype="int32", device=device)
        _core._multi_scale_([tensor(v, dtype, device) for v in values], number(1.0, dtype, device), found)
        assert found.tolist() == [1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weight", [0.001, 0.75, 1.0])
def test_lerp(device, rng, dtype, weight):
    (a, targets), (b, sources) = some(rng, dtype, device), some(rng, dtype, device)
    _core._multi_lerp_(targets, sources, number(weight, dtype, device))
    held = weight if dtype == "float64" else float(np.float32(weight))
    wide = EPS["float64" if dtype == "float64" else "float32"]
    for x, y, t in zip(a, b, targets, strict=True):
        bound = EPS[dtype] / 2 * np.abs(x + held * (y - x)) + 3 * wide * (np.abs(x) + np.abs(y))
        assert np.all(np.abs(np.asarray(t.numpy(), np.float64) - (x + held * (y - x))) <= bound)
        if weight == 1:
            assert_close(t, y)


def test_views_that_are_not_aligned(device, rng):
    for dtype in FLOATS:
        whole = rounded(rng.standard_normal(5000), dtype)
        base = tensor(whole, dtype, device)
        views = [base[1:4100], base[4101:4999]]
        assert_close(
            _core._multi_norm(views), np.sqrt((whole[1:4100] ** 2).sum() + (whole[4101:4999] ** 2).sum()), 1e-5
        )
        _core._multi_scale_(views, number(2.0, dtype, device))
        wanted = whole.copy()
        wanted[1:4100] *= 2
        wanted[4101:4999] *= 2
        assert_close(base, wanted)


def test_many_tensors_take_one_dispatch(device):
    tensors = [vkml.full((i % 7 + 1,), 2.0, device=device) for i in range(300)]
    weight = vkml.full((), 0.5, device=device)
    before = vkml.dispatch_count(device)
    _core._multi_lerp_(tensors, list(tensors), weight)
    _core._multi_scale_(tensors, weight)
    norm = _core._multi_norm(tensors)
    assert vkml.dispatch_count(device) - before <= 4
    assert norm.item() == pytest.approx(np.sqrt(sum(t.numel() for t in tensors)), rel=1e-6)


def test_refusals(device):
    x, one = vkml.ones(2, device=device), vkml.ones((), device=device)
    bad = [
        (lambda: _core._multi_norm([]), vkml.ShapeError),
        (lambda: _core._multi_norm([vkml.ones(2, dtype="int32")]), vkml.DTypeError),
        (lambda: _core._multi_norm([x, x.double()]), vkml.DTypeError),
        (lambda: _core._multi_norm([vkml.ones(2, 3, device=device).T]), vkml.ShapeError),
        (lambda: _core._multi_scale_([x], x), vkml.ShapeError),
        (lambda: _core._multi_scale_([x], one.double()), vkml.DTypeError),
        (lambda: _core._multi_scale_([x], one, one), vkml.DTypeError),
        (lambda: _core._multi_lerp_([x], [], one), vkml.ShapeError),
        (lambda: _core._multi_lerp_([x], [vkml.ones(3, device=device)], one), vkml.ShapeError),
        (lambda: _core._multi_lerp_([x], [x.double()], one), vkml.DTypeError),
    ]
    for call, error in bad:
        with pytest.raises(error, match="expected"):
            call()
    assert x.tolist() == [1, 1]

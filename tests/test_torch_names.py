"""Names that people who come from PyTorch or NumPy try first: axis=, t, clip, eq, vstack, meshgrid, isclose."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import to_numpy

import vkml

DTYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"]
FLOATS = DTYPES[:4]
X = np.random.default_rng(0).integers(-4, 5, (2, 3, 4)).astype(np.float32)


def made(device, values, dtype="float32"):
    return vkml.tensor(np.asarray(values), device=device).to(dtype)


# axis= and keepdims= ------------------------------------------------------------------------------------------------

WITH_KEEPDIM = "sum mean prod amax amin argmax argmin max min var std logsumexp all any norm".split()  # noqa: SIM905
WITH_DIM = "softmax log_softmax cumsum sort argsort squeeze unsqueeze unbind".split()  # noqa: SIM905


def same(a, b):
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))


@pytest.mark.parametrize("name", WITH_KEEPDIM)
def test_axis_and_keepdims_of_reductions(device, name):
    x = made(device, X)
    for function in (lambda **k: getattr(vkml, name)(x, **k), lambda **k: getattr(x, name)(**k)):
        same(function(axis=1), function(dim=1))
        same(function(axis=-1, keepdims=True), function(dim=-1, keepdim=True))
        same(function(axis=0, keepdim=True), function(dim=0, keepdims=True))
    if name not in ("argmax", "argmin", "max", "min"):
        same(getattr(x, name)(axis=(0, 2)), getattr(x, name)(dim=(0, 2)))


@pytest.mark.parametrize("name", WITH_DIM)
def test_axis_of_others(device, name):
    x = made(device, X)
    same(getattr(vkml, name)(x, axis=1), getattr(vkml, name)(x, dim=1))
    same(getattr(x, name)(axis=1), getattr(x, name)(dim=1))


def test_axis_where_arguments_come_before_it(device):
    x, i = made(device, X), vkml.tensor([[[0, 1, 0, 1]]], device=device)
    for call in (
        lambda **k: vkml.cat([x, x], **k),
        lambda **k: vkml.stack([x, x], **k),
        lambda **k: vkml.split(x, 2, **k),
        lambda **k: x.chunk(2, **k),
        lambda **k: vkml.topk(x, 2, **k),
        lambda **k: vkml.gather(x, index=i, **k),
        lambda **k: vkml.index_select(x, index=i.flatten(), **k),
        lambda **k: vkml.repeat_interleave(x, 2, **k),
        lambda **k: vkml.unflatten(x, sizes=(1, -1), **k),
        lambda **k: vkml.take_along_dim(x, i, **k),
        lambda **k: vkml.scatter(x, index=i, src=1.0, **k),
        lambda **k: x.take_along_dim(i, **k),
    ):
        same(call(axis=1), call(dim=1))


def test_axis_reaches_the_gradient(device):
    x = made(device, X).requires_grad_()
    x.sum(axis=1, keepdims=True).square().sum().backward()
    np.testing.assert_allclose(to_numpy(x.grad), np.broadcast_to(2 * X.sum(1, keepdims=True), X.shape))


def test_an_axis_of_their_own():
    index = vkml.tensor([0, 0, 1])
    got = vkml.scatter_add(vkml.ones(3), axis=0, index=index, dim_size=2)
    assert got.tolist() == [2, 1]


def test_names_made_at_run_time():
    word = "".join(["ax", "is"])
    assert vkml.ones(2, 3).sum(**{word: 1}).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: x.sum(axis=5), vkml.IndexError_, r"sum: expected dim in \[-3, 2\], got 5"),
        (lambda x: vkml.softmax(x, axis=1.5), vkml.DTypeError, "softmax: dim: expected an int, got float"),
        (lambda x: x.sum(axis="a"), vkml.DTypeError, "sum: dim: expected an int or a sequence of ints.*, got 'a'"),
        (lambda x: x.sum(axis=0, dim=1), vkml.DTypeError, "sum: dim: expected one value, got two"),
        (lambda x: vkml.cat([x], dim=0, axis=1), vkml.DTypeError, "cat: dim: expected one value, got two"),
        (lambda x: x.sum(0, axis=1), vkml.DTypeError, "sum: dim: expected one value, got two"),
        (lambda x: vkml.unbind(x, axis=0, dim=1), vkml.DTypeError, "unbind: dim: expected one value, got two"),
        (lambda x: x.unbind(axis=0, dim=1), vkml.DTypeError, "unbind: dim: expected one value, got two"),
        (lambda x: x.unbind(dim=1, axis=1), vkml.DTypeError, "unbind: dim: expected one value, got two"),
        (lambda x: x.relu(axis=1), vkml.DTypeError, "relu: expected the arguments nothing, got axis"),
        (lambda x: vkml.sum(x, axes=1), vkml.DTypeError, "sum: expected the arguments input, dim, keepdim, got axes"),
        (lambda x: x.sum(axis=0, keepdims=3), vkml.DTypeError, "sum: keepdim: expected a bool, got int"),
    ],
)
def test_errors_of_axis(call, kind, text):
    with pytest.raises(kind, match=f"^{text}"):
        call(vkml.tensor(X))


@pytest.mark.torch
def test_torch_takes_the_same_words():
    torch = pytest.importorskip("torch")
    x, t = vkml.tensor(X), torch.tensor(X)
    for name in WITH_KEEPDIM:
        if name == "norm":
            continue
        a, b = getattr(x, name)(axis=1, keepdims=True), getattr(t, name)(axis=1, keepdims=True)
        a, b = (v[0] if isinstance(v, tuple) else v for v in (a, b))
        np.testing.assert_allclose(to_numpy(a), b.numpy(), rtol=1e-5)
    for name in ("softmax", "log_softmax", "cumsum", "unsqueeze", "squeeze"):
        a, b = getattr(x, name)(axis=1), getattr(t, name)(axis=1)
        np.testing.assert_allclose(to_numpy(a), b.numpy(), rtol=1e-5)


# t, clip, comparisons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_t(device, dtype):
    x = made(device, np.abs(X[0]), dtype)
    for got in (vkml.t(x), x.t()):
        assert got.shape == (4, 3) and got.tolist() == to_numpy(x).T.tolist()
        assert got.data_ptr() == x.data_ptr()
    assert x[0].t().tolist() == x[0].tolist() and vkml.t(x[0, 0]).shape == ()
    with pytest.raises(vkml.ShapeError, match=r"^t: expected rank <= 2, got \(1, 2, 3\)"):
        vkml.zeros(1, 2, 3).t()


def test_t_and_clip_are_differentiable(device):
    x = made(device, X[0]).requires_grad_()
    weights = made(device, np.arange(12.0).reshape(4, 3))
    (x.t() * weights).sum().backward()
    np.testing.assert_array_equal(to_numpy(x.grad), to_numpy(weights).T)
    x.grad = None
    x.clip(-1, 2).sum().backward()
    np.testing.assert_array_equal(to_numpy(x.grad), (X[0] >= -1) & (X[0] <= 2))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_clip(device, dtype):
    x = made(device, np.abs(X), dtype)
    same(vkml.clip(x, 1, 3), vkml.clamp(x, 1, 3))
    same(x.clip(max=2), x.clamp(max=2))
    same(x.clip(min=x[:1]), x.clamp(min=x[:1]))
    y = x.clone()
    assert y.clip_(1, 2) is y
    same(y, x.clamp(1, 2))


PAIRS = [
    ("eq", "equal"),
    ("ne", "not_equal"),
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
]


@pytest.mark.parametrize(("name", "numpy"), PAIRS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_by_short_names(device, name, numpy, dtype):
    x, y = made(device, np.abs(X), dtype), made(device, np.abs(X[:, ::-1, :1].copy()), dtype)
    wanted = getattr(np, numpy)(to_numpy(x), to_numpy(y))
    for got in (getattr(vkml, name)(x, y), getattr(x, name)(y), getattr(x.mT, name)(y.mT).mT):
        assert got.dtype == vkml.bool_
        np.testing.assert_array_equal(to_numpy(got), wanted)
    np.testing.assert_array_equal(to_numpy(getattr(x, name)(1)), getattr(np, numpy)(to_numpy(x), 1))
    with pytest.raises(vkml.DTypeError, match=f"^{name}: other: expected a Tensor or a number, got str"):
        getattr(x, name)("a")


# vstack, hstack, meshgrid -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vstack", "hstack"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks(device, name, dtype):
    a, b = made(device, np.abs(X[0]), dtype), made(device, np.abs(X[1]), dtype)
    for parts in (
        [a, b],
        (a[0], b[1]),
        [a[0, 0], b[0, 0]],
        [a.T, b.T],
        [a[:, ::2], b[:, 1::2]],
        [made(device, X, dtype)],
    ):
        got, wanted = getattr(vkml, name)(parts), getattr(np, name)([to_numpy(x) for x in parts])
        assert str(got.dtype) == dtype and got.tolist() == wanted.tolist()


def test_stacks_promote_and_differentiate(device):
    a = made(device, X[0]).requires_grad_()
    for function in (vkml.vstack, vkml.hstack):
        a.grad = None
        (function([a, made(device, X[1])]) * 3).sum().backward()
        assert (to_numpy(a.grad) == 3).all()
    assert vkml.hstack([vkml.tensor([1]), vkml.tensor([0.5])]).tolist() == [1, 0.5]
    row, matrix = vkml.ones(3), vkml.ones(2, 3)
    assert vkml.vstack([row, matrix]).shape == (3, 3)


@pytest.mark.parametrize("name", ["vstack", "hstack"])
def test_errors_of_stacks(name):
    function = getattr(vkml, name)
    other = vkml.zeros(5, 7)
    for call, kind, text in (
        (lambda: function([]), vkml.ShapeError, "tensors: expected at least one, got none"),
        (lambda: function(3), vkml.DTypeError, "tensors: expected a sequence of Tensors, got int"),
        (lambda: function(other), vkml.DTypeError, "tensors: expected a sequence of Tensors, got Tensor"),
        (lambda: function([other, 3]), vkml.DTypeError, "tensors: expected Tensors, got int at 1"),
        (
            lambda: function([other, vkml.zeros(2, 3)]),
            vkml.ShapeError,
            r"expected equal extents .*, got \(5, 7\) and \(2, 3\)",
        ),
        (lambda: function([other, vkml.zeros(1, 2, 3)]), vkml.ShapeError, "expected equal extents"),
    ):
        with pytest.raises(kind, match=f"^{name}: {text}"):
            call()


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid(device, indexing):
    vectors = [np.arange(n, dtype=np.float32) + n for n in (3, 2, 4)]
    for count in (1, 2, 3):
        ours = vkml.meshgrid(*(made(device, v) for v in vectors[:count]), indexing=indexing)
        again = vkml.meshgrid([made(device, v) for v in vectors[:count]], indexing=indexing)
        wanted = np.meshgrid(*vectors[:count], indexing=indexing)
        for a, b, c in zip(ours, again, wanted, strict=True):
            np.testing.assert_array_equal(to_numpy(a), c)
            np.testing.assert_array_equal(to_numpy(b), c)
    a, b = vkml.meshgrid(vkml.tensor(2, device=device), vkml.arange(6, device=device)[::2])
    assert a.tolist() == [[2, 2, 2]] and b.tolist() == [[0, 2, 4]]
    x = made(device, vectors[0]).requires_grad_()
    (vkml.meshgrid(x, made(device, vectors[1]), indexing=indexing)[0] * 2).sum().backward()
    assert to_numpy(x.grad).tolist() == [4, 4, 4]
    assert vkml.meshgrid(vkml.zeros(0), vkml.zeros(2))[1].shape == (0, 2)


def test_errors_of_meshgrid():
    x = vkml.ones(2)
    for call, kind, text in (
        (lambda: vkml.meshgrid(), vkml.ShapeError, "tensors: expected at least one, got none"),
        (lambda: vkml.meshgrid(3), vkml.DTypeError, "tensors: expected a sequence of Tensors, got int"),
        (lambda: vkml.meshgrid(x, [1]), vkml.DTypeError, "tensors: expected Tensors, got list at 1"),
        (lambda: vkml.meshgrid(x, vkml.ones(2, 2)), vkml.ShapeError, r"expected tensors of rank 0 or 1, got \(2, 2\)"),
        (lambda: vkml.meshgrid(x, vkml.arange(2)), vkml.DTypeError, "expected one dtype, got float32 and int64"),
        (lambda: vkml.meshgrid(x, indexing="yx"), vkml.ShapeError, 'indexing: expected "ij" or "xy", got \'yx\''),
    ):
        with pytest.raises(kind, match=f"^meshgrid: {text}"):
            call()


def test_mixed_devices_are_refused_by_name(vulkan):
    x, y = vkml.ones(2), vkml.ones(2, device=vulkan)
    for name, call in (
        ("vstack", lambda: vkml.vstack([x, y])),
        ("hstack", lambda: vkml.hstack([x, y])),
        ("meshgrid", lambda: vkml.meshgrid(x, y)),
        ("isclose", lambda: vkml.isclose(x, y)),
        ("allclose", lambda: x.allclose(y)),
    ):
        with pytest.raises(vkml.DeviceError, match=f"^{name}: expected tensors on one device, got cpu and vulkan:0"):
            call()


def test_a_grid_has_at_most_eight_axes():
    assert vkml.meshgrid(*[vkml.ones(2)] * 8)[0].ndim == 8
    with pytest.raises(vkml.ShapeError, match=r"^meshgrid: expected at most 8 tensors, got 9"):
        vkml.meshgrid(*[vkml.ones(2)] * 9)


# isclose, allclose --------------------------------------------------------------------------------------------------

ODD = [0.0, -0.0, 1.0, 1.0 + 2**-23, 1.00002, -1.0, 1e-9, 3e38, np.inf, -np.inf, np.nan, 100.001]


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_isclose(device, dtype, equal_nan):
    a, b = made(device, ODD, dtype).reshape(-1, 1), made(device, ODD, dtype)
    for rtol, atol in ((1e-5, 1e-8), (0.0, 0.0), (0.1, 0.0), (0.0, 2.5)):
        with np.errstate(invalid="ignore", over="ignore"):
            wanted = np.isclose(to_numpy(a).astype(np.float64), to_numpy(b).astype(np.float64), rtol, atol, equal_nan)
        got = vkml.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
        assert got.dtype == vkml.bool_
        np.testing.assert_array_equal(to_numpy(got), wanted)
        same(a.isclose(b, rtol, atol, equal_nan), got)
        assert vkml.allclose(a, b, rtol, atol, equal_nan) is bool(wanted.all())
    assert a.allclose(a) is False and a.allclose(a.clone(), equal_nan=True) is True


@pytest.mark.parametrize("dtype", DTYPES[4:])
def test_isclose_of_integers(device, dtype):
    a, b = made(device, [[0, 1, 100, 127, 1]], dtype), made(device, [[0, 0, 101, 127, 1]], dtype)
    assert vkml.isclose(a, b).tolist() == np.equal(to_numpy(a), to_numpy(b)).tolist()
    assert vkml.allclose(a, b, atol=1.0) and vkml.allclose(b, a, atol=1.0)


def test_isclose_of_large_integers_and_mixed_dtypes(device):
    n = 2**53
    a = vkml.tensor([n, n], device=device)
    assert vkml.isclose(a, vkml.tensor([n, n + 1], device=device), rtol=0, atol=0).tolist() == [True, False]
    assert vkml.isclose(vkml.tensor([1, 2], device=device), made(device, [1.0, 2.5])).tolist() == [True, False]
    x = vkml.tensor([2**24 + 1, -(2**24) - 1], device=device)
    assert vkml.isclose(x, vkml.zeros_like(x), rtol=0, atol=2.0**24).tolist() == [False, False]
    assert vkml.allclose(made(device, [1 / 3], "float64"), made(device, [1 / 3])) is True
    assert vkml.allclose(vkml.zeros(0, device=device), vkml.zeros(0, device=device)) is True
    x = vkml.ones(2, device=device, requires_grad=True)
    assert not vkml.isclose(x, x).requires_grad


@pytest.mark.parametrize(
    "tolerances", [(1e-5, 1e-8), (0, 0), (0, 1), (0.5, 0), (0.75, 0), (1.25, 0), (0, 2.0**64), (0, 5e18)]
)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_isclose_of_extreme_integers(device, dtype, tolerances):
    rtol, atol = tolerances
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array([low, low + 1, low // 2, 0, 1, high // 2 + 1, high - 1, high], dtype)
    a = vkml.tensor(values, device=device)
    wanted = [[abs(int(x) - int(y)) <= atol + rtol * abs(int(y)) for y in values] for x in values]
    assert vkml.isclose(a.reshape(-1, 1), a, rtol=rtol, atol=atol).tolist() == wanted


@pytest.mark.torch
def test_isclose_is_torchs():
    torch = pytest.importorskip("torch")
    a, b = np.array(ODD, np.float32)[:, None], np.array(ODD, np.float32)
    for kwargs in ({}, {"equal_nan": True}, {"rtol": 0.1}, {"atol": 2.0, "rtol": 0.0}):
        wanted = torch.isclose(torch.tensor(a), torch.tensor(b), **kwargs).numpy()
        np.testing.assert_array_equal(to_numpy(vkml.isclose(vkml.tensor(a), vkml.tensor(b), **kwargs)), wanted)
    # PyTorch compares integers as float32, so only here do 2**40 and its neighbour differ for rtol=0.
    i, j = torch.tensor([2**40, 5, 7]), torch.tensor([2**40 + 1, 5, 8])
    for kwargs in ({}, {"atol": 1.0, "rtol": 0.0}):
        got = vkml.isclose(vkml.tensor(i), vkml.tensor(j), **kwargs)
        np.testing.assert_array_equal(to_numpy(got), torch.isclose(i, j, **kwargs).numpy())


@pytest.mark.parametrize("name", ["isclose", "allclose"])
def test_errors_of_isclose(name):
    function, x = getattr(vkml, name), vkml.ones(2)
    for call, kind, text in (
        (lambda: function([1], x), vkml.DTypeError, "input: expected a Tensor, got list"),
        (lambda: function(x, 1.0), vkml.DTypeError, "other: expected a Tensor, got float"),
        (lambda: function(x, x, rtol=-1), vkml.ShapeError, "rtol: expected a number >= 0, got -1"),
        (lambda: function(x, x, atol=float("nan")), vkml.ShapeError, "atol: expected a number >= 0, got nan"),
        (lambda: function(x, x, atol="a"), vkml.DTypeError, "atol: expected a float, got str"),
        (lambda: function(x, x, equal_nan=1), vkml.DTypeError, "equal_nan: expected a bool, got int"),
        (
            lambda: function(x, vkml.ones(2, 3)),
            vkml.ShapeError,
            r"expected shapes that broadcast, got \(2,\) and \(2, 3\)",
        ),
    ):
        with pytest.raises(kind, match=f"^{name}: {text}"):
            call()


# rand_like, randn_like ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rand", "randn"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_like(device, name, dtype):
    x = made(device, X, dtype).mT
    like, plain = getattr(vkml, f"{name}_like"), getattr(vkml, name)
    got = like(x, seed=3, offset=2)
    assert got.dtype == x.dtype and got.device == x.device and got.is_contiguous()
    same(got, plain(x.shape, seed=3, offset=2, dtype=dtype, device=device))
    same(like(x, seed=3, dtype="float64", device="cpu"), plain(x.shape, seed=3, dtype="float64"))
    vkml.manual_seed(1)
    first = like(x)
    vkml.manual_seed(1)
    same(first, plain(x.shape, dtype=dtype, device=device))
    assert like(x).tolist() != first.tolist()
    with pytest.raises(vkml.DTypeError, match=f"^{name}_like: dtype: expected a floating-point dtype, got int64"):
        like(vkml.arange(3))
    assert like(vkml.arange(3), dtype="float32").shape == (3,)

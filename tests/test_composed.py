"""Functions that are compositions, against NumPy and PyTorch: unbind, diagonal, scatter, take_along_dim, einsum..."""

import itertools

import numpy as np
import pytest
from helpers import to_numpy

import vkml

DTYPES = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"]


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-9, 10, shape)


def made(device, shape, dtype="float32", seed=0):
    return vkml.tensor(numbers(shape, seed), dtype="int64", device=device).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unbind(device, dtype):
    x = made(device, (3, 4, 2), dtype)
    for dim in (0, 1, -1):
        parts = vkml.unbind(x, dim)
        assert isinstance(parts, tuple) and len(parts) == x.shape[dim]
        for part, wanted in zip(parts, np.moveaxis(to_numpy(x), dim, 0), strict=True):
            assert part.tolist() == wanted.tolist()
    assert x.unbind()[1].data_ptr() == x[1].data_ptr() and vkml.unbind(x[:0]) == ()
    assert [t.item() for t in x[0, 0].unbind()] == x[0, 0].tolist()
    for dim, text in ((3, r"unbind: expected dim in \[-3, 2\], got 3"), (-4, "got -4")):
        with pytest.raises(vkml.IndexError_, match=text):
            x.unbind(dim)
    with pytest.raises(vkml.ShapeError, match="unbind: expected rank >= 1"):
        vkml.unbind(vkml.tensor(1.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_diagonal(device, dtype):
    for shape in ((3, 4), (4, 3), (2, 3, 4), (5, 1), (0, 3), (2, 4, 3, 5)):
        x = made(device, shape, dtype)
        for a, b in itertools.permutations(range(-len(shape), len(shape)), 2):
            if a % len(shape) == b % len(shape):
                continue
            for offset in (-4, -1, 0, 1, 2, 5):
                got = vkml.diagonal(x, offset, a, b)
                wanted = np.diagonal(to_numpy(x), offset, a, b)
                assert got.shape == wanted.shape and got.tolist() == wanted.tolist(), (shape, a, b, offset)
    x = vkml.zeros(3, 4, device=device)
    x.diagonal(1).fill_(2)
    assert x.sum().item() == 6  # a view
    for call, error in (
        (lambda: vkml.diagonal(x[0]), vkml.ShapeError),
        (lambda: vkml.diagonal(x, 0, 1, -1), vkml.ShapeError),
        (lambda: vkml.diagonal(x, 0, 0, 2), vkml.IndexError_),
    ):
        with pytest.raises(error, match=r"^diagonal: expected"):
            call()


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(device, dtype):
    rng = np.random.default_rng(1)
    for shape, dim, extent in (((4, 5), 0, 3), ((4, 5), 1, 2), ((3, 4, 6), -2, 4), ((7,), 0, 5), ((2, 3), 0, 0)):
        x = made(device, shape, dtype)
        axis = dim % len(shape)
        part = tuple(extent if i == axis else max(n - 1, 1) for i, n in enumerate(shape))
        index = np.argsort(rng.random(tuple(shape[axis] if i == axis else n for i, n in enumerate(part))), axis)
        index = np.take(index, range(extent), axis)  # no place twice
        src = made(device, tuple(n + 1 for n in part), dtype, 2)
        for width in ("int64", "int32"):
            got = vkml.scatter(x, dim, vkml.tensor(index, dtype=width, device=device), src)
            wanted = to_numpy(x).copy()
            cut = to_numpy(src)[tuple(slice(0, n) for n in part)]
            whole = wanted[tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(part))]
            np.put_along_axis(whole, index, cut, axis)
            assert got.dtype == x.dtype and got.tolist() == wanted.tolist()
            np.put_along_axis(whole, index, 1, axis)
            assert x.scatter(dim, vkml.tensor(index, dtype=width, device=device), 1).tolist() == wanted.tolist()
    x = vkml.tensor(3.0, device=device)
    assert x.scatter(0, vkml.tensor(0, device=device), 5.0).item() == 5 and x.item() == 3
    last = vkml.zeros(2, device=device).scatter(
        0, vkml.tensor([1, 1, 1], device=device), vkml.arange(3.0, device=device)
    )
    assert last.tolist() == [0, 2]


def test_scatter_says_what_does_not_fit(device):
    x, index = vkml.zeros(2, 3, device=device), vkml.tensor([[0, 1]], device=device)
    for call, error, text in (
        (lambda: x.scatter(0, index[0], 1.0), vkml.ShapeError, "index: expected rank 2"),
        (lambda: x.scatter(0, index.float(), 1.0), vkml.DTypeError, "index: expected int64 or int32, got float32"),
        (lambda: x.scatter(0, [[0]], 1.0), vkml.DTypeError, "index: expected a Tensor, got list"),
        (lambda: x.scatter(0, index.expand(2, 2).repeat(1, 2), 1.0), vkml.ShapeError, "index: expected extents within"),
        (lambda: x.scatter(0, index, x.double()), vkml.DTypeError, "src: expected float32, got float64"),
        (lambda: x.scatter(0, index, x[:, :1]), vkml.ShapeError, "src: expected at least shape"),
        (lambda: x.scatter(2, index, 1.0), vkml.IndexError_, r"expected dim in \[-2, 1\], got 2"),
    ):
        with pytest.raises(error, match=r"^scatter: " + text):
            call()
    with pytest.raises(vkml.IndexError_, match=r"expected an index in \[-2, 2\), got 2"):
        x.scatter(0, index + 1, 1.0).tolist()


def test_take_along_dim(device):
    x = made(device, (3, 5))
    order = vkml.argsort(x, 1)
    assert vkml.take_along_dim(x, order, 1).tolist() == np.sort(to_numpy(x), 1).tolist()
    index = vkml.tensor([[4], [0], [2]], device=device)
    assert x.take_along_dim(index, -1).tolist() == np.take_along_axis(to_numpy(x), to_numpy(index), 1).tolist()
    assert x[:1].take_along_dim(index, 1).tolist() == to_numpy(x)[0, [4, 0, 2]].reshape(3, 1).tolist()
    assert x.take_along_dim(vkml.tensor([[7, 0]], device=device)).tolist() == to_numpy(x).ravel()[[7, 0]].tolist()
    with pytest.raises(vkml.ShapeError, match="take_along_dim: expected shapes that broadcast beside axis 1"):
        x.take_along_dim(index[:2], 1)
    with pytest.raises(vkml.ShapeError, match="take_along_dim: indices: expected rank 2"):
        x.take_along_dim(index[0], 1)


def test_argwhere_and_bincount(device):
    x = made(device, (4, 5))
    assert vkml.argwhere(x).tolist() == np.argwhere(to_numpy(x)).tolist() and x.argwhere().dtype == vkml.int64
    values = np.random.default_rng(3).integers(0, 50, 1000)
    for dtype in ("int64", "int32", "uint8", "int16"):
        counted = vkml.bincount(vkml.tensor(values, dtype=dtype, device=device), minlength=60)
        assert counted.dtype == vkml.int64 and counted.tolist() == np.bincount(values, minlength=60).tolist()
    weights = np.random.default_rng(4).standard_normal(1000)
    for dtype, wide in (("float32", "float32"), ("float64", "float64"), ("int32", "float64")):
        given = (weights * 8).astype(dtype)
        t = vkml.tensor(given, dtype=dtype, device=device)
        got = vkml.tensor(values, device=device).bincount(t)
        assert str(got.dtype) == wide
        np.testing.assert_allclose(to_numpy(got), np.bincount(values, given), rtol=1e-4, atol=1e-4)
    assert vkml.bincount(vkml.tensor([], dtype="int64", device=device)).tolist() == []
    assert vkml.bincount(vkml.tensor([], dtype="int64", device=device), minlength=2).tolist() == [0, 0]
    for call, error in (
        (lambda: vkml.bincount(x), vkml.DTypeError),
        (lambda: vkml.bincount(x.int()), vkml.ShapeError),
        (lambda: vkml.bincount(vkml.tensor([0, -1])), vkml.ShapeError),
        (lambda: vkml.bincount(vkml.tensor([0]), minlength=-1), vkml.ShapeError),
        (lambda: vkml.bincount(vkml.tensor([0]), vkml.ones(2)), vkml.ShapeError),
    ):
        with pytest.raises(error, match=r"^bincount: "):
            call()


EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij->ji", (3, 4)),
    ("ij->", (3, 4)),
    ("ij->j", (3, 4)),
    ("ii->i", (4, 4)),
    ("ii", (4, 4)),
    ("iij,jk->ki", (3, 3, 4), (4, 2)),
    ("iii->i", (3, 3, 3)),
    ("i,j->ij", (3,), (4,)),
    ("i,i->", (5,), (5,)),
    ("i,i->i", (5,), (5,)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bij,kj->bik", (2, 3, 4), (5, 4)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (7, 4, 5)),
    ("i...,...i->...", (3, 2), (2, 3)),
    ("...i->...", (2, 3, 4)),
    ("...", (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,kj,lj->ikl", (2, 3), (4, 3), (5, 3)),
    ("abc,cd,be->ade", (2, 3, 4), (4, 5), (3, 6)),
    ("ij,kl->ijkl", (2, 3), (4, 5)),
    ("ij,kl->", (2, 3), (4, 5)),
    ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)),
    (" i j , j -> i ", (2, 3), (3,)),
    ("ij,jk->ik", (1, 4), (4, 1)),
    ("ij,jk->ik", (0, 4), (4, 3)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ab,ab,ab->", (3, 4), (3, 4), (3, 4)),
    (",i->i", (), (3,)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(e, s) for e, *s in EQUATIONS])
def test_einsum(device, equation, shapes):
    arrays = [numbers(shape, i).astype(np.float32) for i, shape in enumerate(shapes)]
    got = vkml.einsum(equation, *(vkml.tensor(a, device=device) for a in arrays))
    wanted = np.einsum(equation, *arrays)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(to_numpy(got), wanted, rtol=1e-5, atol=1e-4)
    assert vkml.einsum(equation, [vkml.tensor(a, device=device) for a in arrays]).shape == wanted.shape


def test_einsum_broadcasts_extents_of_one(device):
    a, b = made(device, (2, 1)), made(device, (3, 4), seed=1)
    wanted = np.einsum("ij,jk->ik", np.broadcast_to(to_numpy(a), (2, 3)), to_numpy(b))
    np.testing.assert_allclose(to_numpy(vkml.einsum("ij,jk->ik", a, b)), wanted)


def test_einsum_says_what_does_not_fit():
    a = vkml.ones(2, 3)
    for equation, operands, text in (
        ("ij,jk->ik", (a,), "expected 1 terms for as many operands"),
        ("ijk->i", (a,), r"expected a label for every axis of shape \(2, 3\)"),
        ("i->i", (a,), "expected a label for every axis"),
        ("ij->ijj", (a,), "expected each label of the result once"),
        ("ij->k", (a,), "expected each label of the result once"),
        ("i1->i", (a,), "expected letters, commas, Ellipses and one arrow"),
        ("ij,jk->ik", (a, a), "expected equal extents for the label 'j', got 3 and 2"),
        ("ii->i", (a,), "expected equal extents for the label 'i'"),
    ):
        with pytest.raises(vkml.ShapeError, match="^einsum: " + text):
            vkml.einsum(equation, *operands)
    for arguments in ((a, a), ("i", 3), ("i",), ("ij", np.ones((2, 2)))):
        with pytest.raises(vkml.DTypeError, match=r"^einsum: expected a text and tensors"):
            vkml.einsum(*arguments)


FUNCTIONS = {
    "diagonal": lambda x: vkml.diagonal(x, 1, 0, 2) * 2,
    "unbind": lambda x: vkml.unbind(x, 1)[1] * vkml.unbind(x, 1)[0],
    "scatter": lambda x: x.scatter(1, vkml.tensor([[[2, 0]], [[1, 1]]]).to(x.device), x * x),
    "take_along_dim": lambda x: x.take_along_dim(vkml.tensor([[[1], [1], [0]]]).to(x.device), 2) * 3,
    "einsum": lambda x: vkml.einsum("ijk,ilk,jk->lj", x, x, x[0]),
    "trace": lambda x: vkml.einsum("iji->j", x[:, :, :2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(device, name):
    """By central differences in float64 on the CPU; in float32 elsewhere against those of the CPU."""
    f, values = FUNCTIONS[name], np.random.default_rng(5).standard_normal((2, 3, 4))

    def gradient(where, dtype):
        x = vkml.tensor(values, dtype=dtype, device=where, requires_grad=True)
        y = f(x)
        (y * vkml.arange(1, y.numel() + 1, device=where).reshape(y.shape).to(dtype)).sum().backward()
        return to_numpy(x.grad)

    if device != "cpu":
        np.testing.assert_allclose(gradient(device, "float32"), gradient("cpu", "float64"), rtol=1e-4, atol=1e-4)
        return

    def loss(v):
        y = to_numpy(f(vkml.tensor(v, dtype="float64")))
        return (y * np.arange(1, y.size + 1).reshape(y.shape)).sum()

    wanted, step = np.zeros_like(values), 1e-5
    for at in np.ndindex(values.shape):
        moved = np.zeros_like(values)
        moved[at] = step
        wanted[at] = (loss(values + moved) - loss(values - moved)) / (2 * step)
    np.testing.assert_allclose(gradient("cpu", "float64"), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.torch
def test_against_torch(device):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((3, 4, 5)).astype(np.float32), rng.standard_normal((2, 3, 4)).astype(np.float32)
    index = np.argsort(rng.random((3, 4, 5)), 2)[:, :3, :2]
    calls = [
        (lambda m, x, y, i: m.diagonal(x, -1, 2, 0), 1e-6),
        (lambda m, x, y, i: m.scatter(x, 2, i, y), 0),
        (lambda m, x, y, i: m.take_along_dim(x[:, :3], i, 2), 0),
        (lambda m, x, y, i: m.einsum("abc,dab->cd", x, y), 1e-4),
        (lambda m, x, y, i: m.argwhere(x > 0), 0),
        (lambda m, x, y, i: m.stack(m.unbind(x, 2)), 0),
        (lambda m, x, y, i: m.bincount(i.flatten(), minlength=7), 0),
    ]
    for call, tolerance in calls:
        x, y, i = (vkml.tensor(v, device=device) for v in (a, b, index))
        s, t, j = (torch.tensor(v) for v in (a, b, index))
        if call is calls[1][0]:
            y, t = x[:, :3, :2] * 2, s[:, :3, :2] * 2
        ours, theirs = call(vkml, x, y, i), call(torch, s, t, j)
        np.testing.assert_allclose(to_numpy(ours), theirs.numpy(), rtol=tolerance, atol=tolerance)


def test_other_kinds_than_tensors():
    index = vkml.tensor([0])
    for name, arguments in (
        ("unbind", ()),
        ("diagonal", ()),
        ("scatter", (0, index, 1.0)),
        ("take_along_dim", (index,)),
        ("argwhere", ()),
        ("bincount", ()),
    ):
        for value, got in (([1], "list"), (None, "None"), (np.ones(1), "ndarray")):
            with pytest.raises(vkml.DTypeError, match=f"^{name}: input: expected a Tensor, got {got}"):
                getattr(vkml, name)(value, *arguments)


def test_diagonals_are_views_of_any_strides(device):
    base = vkml.arange(60, device=device).reshape(3, 4, 5)
    for x, axes in ((base.permute(2, 0, 1), (0, 2)), (base[:, ::2, 1:], (1, 2)), (base[1:].mT, (2, 1))):
        for offset in (-9, -1, 0, 2, 9):
            got = vkml.diagonal(x, offset, *axes)
            np.testing.assert_array_equal(to_numpy(got), np.diagonal(to_numpy(x), offset, *axes))
            got.fill_(7)
            assert (np.diagonal(to_numpy(x), offset, *axes) == 7).all()
    w = vkml.ones(4, 3, device=device, requires_grad=True)
    (w.mT.diagonal(1) * 2).sum().backward()
    np.testing.assert_array_equal(to_numpy(w.grad), np.eye(4, 3, -1) * 2)

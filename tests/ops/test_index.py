"""gather, index_select, scatter_add, index_add, embedding, nonzero, masked_select."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import ALL, FLOATS, LAYOUTS, assert_close, assert_same_bits, laid_out, rounded, tensor, to_numpy
from op_cases import EXACT, Tolerance, bench, op_cases

import vkml


def sum_bound(dim: int) -> Tolerance:
    """What n additions one after the other can lose: n eps/2 times the sum of the magnitudes, at each place."""

    def bound(eps: float, x: np.ndarray, index: np.ndarray, src: np.ndarray, **_: object) -> np.ndarray:
        if index.ndim < x.ndim:
            index = np.broadcast_to(index.reshape([-1 if a == dim else 1 for a in range(x.ndim)]), src.shape)
        terms = np_scatter(np.ones_like(x), dim, index, np.ones_like(src))
        return eps / 2 * terms * np_scatter(np.abs(x), dim, index, np.abs(src))

    return Tolerance(bound=bound)


def np_scatter(x: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray) -> np.ndarray:
    """In row-major order of the index; integers wrap, sums of floats are those of x's type."""
    out = x.copy()
    places = np.indices(index.shape)
    places[dim] = index
    part = src[tuple(slice(0, n) for n in index.shape)]
    np.add.at(out, tuple(places), part)
    return out


def gathered(rng: np.random.Generator, x: tuple[int, ...], i: tuple[int, ...], dim: int) -> list[np.ndarray]:
    return [rng.standard_normal(x) * 3, rng.integers(0, x[dim], i)]


def scattered(rng: np.random.Generator, x: tuple[int, ...], i: tuple[int, ...], dim: int) -> list[np.ndarray]:
    return [rng.standard_normal(x), rng.integers(0, x[dim], i), rng.standard_normal(i)]


# (input, index) for dim -1, and for dim 0: on the other axes the index is no larger.
LAST = [((5,), (9,)), ((3, 4), (3, 7)), ((4, 5, 6), (2, 5, 3)), ((3, 4), (0, 4)), ((2, 3, 130), (2, 3, 200))]
FIRST = [((5,), (9,)), ((4, 3), (7, 2)), ((4, 5, 6), (9, 5, 3)), ((3, 4), (3, 0)), ((130, 2, 3), (200, 2, 3))]


def np_gather(x: np.ndarray, i: np.ndarray, dim: int) -> np.ndarray:
    part = tuple(slice(None) if a == dim % x.ndim else slice(0, n) for a, n in enumerate(i.shape))
    return np.take_along_axis(x[part], i, dim)


def gathers(shapes: list, dim: int) -> type:
    return op_cases(
        lambda x, i, dim: vkml.gather(x, dim, i),
        np_gather,
        name="gather",
        shapes=shapes,
        inputs=gathered,
        dtypes=FLOATS,
        torch=lambda torch, x, i, dim: torch.gather(x, dim, i),
        tolerance=EXACT,
        dim=dim,
        same_bits=True,
        second=True,
        bench=[bench((4096, 1024), (4096, 1024), dim=dim)],
    )


def scatters(shapes: list, dim: int) -> type:
    return op_cases(
        lambda x, i, s, dim: vkml.scatter_add(x, dim, i, s),
        lambda x, i, s, dim: np_scatter(x, dim, i, s),
        name="scatter_add",
        torch=lambda torch, x, i, s, dim: torch.scatter_add(x, dim, i, s),
        shapes=shapes,
        inputs=scattered,
        dtypes=FLOATS,
        tolerance=sum_bound(dim),
        dim=dim,
        same_bits=True,
        second=True,
    )


TestGatherLast, TestGatherFirst = gathers(LAST, -1), gathers(FIRST, 0)
TestScatterAddLast, TestScatterAddFirst = scatters(LAST, -1), scatters(FIRST, 0)
TestIndexSelect = op_cases(
    lambda x, i, dim: vkml.index_select(x, dim, i), lambda x, i, dim: np.take(x, i, dim), name="index_select",
    torch=lambda torch, x, i, dim: torch.index_select(x, dim, i), inputs=gathered, dtypes=FLOATS, tolerance=EXACT,
    shapes=[((5,), (9,)), ((3, 4), (7,)), ((4, 5, 6), (3,)), ((3, 4), (0,)), ((40, 3, 64), (100,))], dim=[0, -1],
    same_bits=True, second=True, bench=[bench((50257, 768), (8192,), dim=0)],
)  # fmt: skip


def rows_added(rng: np.random.Generator, x: tuple[int, ...], i: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.standard_normal(x), rng.integers(0, x[1], i), rng.standard_normal((x[0], i[0], *x[2:]))]


def np_index_add(x: np.ndarray, i: np.ndarray, s: np.ndarray) -> np.ndarray:
    out = np.moveaxis(x, 1, 0).copy()
    np.add.at(out, i, np.moveaxis(s, 1, 0))
    return np.moveaxis(out, 0, 1)


TestIndexAdd = op_cases(
    lambda x, i, s: vkml.index_add(x, 1, i, s), np_index_add, name="index_add",
    torch=lambda torch, x, i, s: torch.index_add(x, 1, i, s), inputs=rows_added, dtypes=FLOATS, tolerance=sum_bound(1),
    shapes=[((3, 4), (7,)), ((2, 5, 3), (11,)), ((3, 4), (0,)), ((2, 300, 3), (1000,))], same_bits=True, second=True,
)  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_moves(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = rounded(rng.integers(0, 2 if dtype == "bool" else 100, (6, 7)), dtype)
    t = tensor(x, dtype, device)
    index = rng.integers(0, 6, (4, 7))
    np.testing.assert_array_equal(
        to_numpy(vkml.gather(t, 0, vkml.tensor(index, device=device))), np.take_along_axis(x, index, 0)
    )
    np.testing.assert_array_equal(
        to_numpy(vkml.index_select(t, 0, vkml.tensor(index[:, 0], device=device))), x[index[:, 0]]
    )
    added = to_numpy(vkml.index_add(t, 0, vkml.tensor(index[:, 0], device=device), t[:4]))
    expected = x.astype(np.int64)
    np.add.at(expected, index[:, 0], x[:4].astype(np.int64))
    wanted = rounded(expected, dtype) if dtype in FLOATS else expected.astype(added.dtype)
    np.testing.assert_array_equal(added, wanted)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_index_dtypes_and_strides(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = rng.standard_normal((6, 8)).astype(np.float32)
    index = rng.integers(0, 6, (10, 8))
    i = vkml.tensor(index, dtype=dtype, device=device)
    t = tensor(x, device=device)
    np.testing.assert_array_equal(vkml.gather(t, 0, i[::2]).numpy(), np.take_along_axis(x, index[::2], 0))
    np.testing.assert_array_equal(vkml.index_select(t, 0, i[:, 3]).numpy(), x[index[:, 3]])
    np.testing.assert_array_equal(vkml.index_select(t, 0, i[2, 1]).numpy(), x[index[2, 1] : index[2, 1] + 1])
    with pytest.raises(vkml.DTypeError, match="gather: index: expected int64 or int32, got float32"):
        vkml.gather(t, 0, t)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_row_layouts(device: str, rng: np.random.Generator, layout: str) -> None:
    for shape in [(6, 8), (3, 4, 5), (2, 3, 2, 3, 2, 3)]:
        t, x = laid_out(layout, rng.standard_normal(shape), "float32", device)
        for dim, extent in enumerate(shape):
            index = rng.integers(0, extent, 9)
            i = vkml.tensor(index, device=device)
            np.testing.assert_array_equal(to_numpy(vkml.index_select(t, dim, i)), np.take(x, index, dim))
            source = vkml.index_select(t, dim, i)
            got = vkml.index_add(t, dim, i, source)
            out = np.moveaxis(x.astype(np.float32), dim, 0).copy()
            for k in index:
                out[k] += np.moveaxis(x.astype(np.float32), dim, 0)[k]
            np.testing.assert_array_equal(got.numpy(), np.moveaxis(out, 0, dim))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_repeats_add_in_ascending_order_in_f32(device: str, rng: np.random.Generator, dtype: str) -> None:
    n = 5000
    src = rounded(rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n), dtype).astype(np.float32)
    index = rng.integers(0, 7, n)
    got = vkml.scatter_add(tensor(src, dtype, device), 0, vkml.tensor(index, device=device), 7)
    expected = np.zeros(7, np.float32)
    for i, v in zip(index, src, strict=True):
        expected[i] += v  # one f32 addition after the other
    np.testing.assert_array_equal(to_numpy(got), rounded(expected, dtype))
    element = vkml.scatter_add(
        vkml.zeros((7,), dtype=dtype, device=device), 0, vkml.tensor(index, device=device), tensor(src, dtype, device)
    )
    assert_same_bits(element, got)


def test_known_answers(device: str) -> None:
    index = vkml.tensor([0, 2, 0], device=device)
    assert vkml.scatter_add(tensor([1, 2, 3], device=device), 0, index, 3).tolist() == [4, 0, 2]
    assert vkml.scatter_add(vkml.ones((2, 3), device=device), 1, index, 4).tolist() == [[2, 0, 1, 0]] * 2
    assert vkml.index_add(
        vkml.zeros((3,), device=device), 0, index, vkml.ones((3,), device=device), alpha=2.5
    ).tolist() == [5, 0, 2.5]
    ints = vkml.scatter_add(
        vkml.tensor([100, 100], dtype="uint8", device=device), 0, vkml.tensor([0, 0], device=device), 1
    )
    assert ints.tolist() == [200]


def test_scatter_add_of_rows_has_index_select_as_gradient(device: str) -> None:
    src = tensor(np.ones((3, 2)), device=device, requires_grad=True)
    out = vkml.scatter_add(src, 0, vkml.tensor([0, 2, 0], device=device), 3)
    out.backward(tensor([[1, 2], [3, 4], [5, 6]], device=device))
    assert src.grad.tolist() == [[1, 2], [5, 6], [1, 2]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
def test_embedding(device: str, rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> None:
    w = rounded(rng.standard_normal((5, 8)), dtype)
    index = np.asarray(rng.integers(0, 5, shape))
    weight, i = tensor(w, dtype, device, True), vkml.tensor(index, dtype="int64", device=device)
    got = vkml.embedding(weight, i)
    np.testing.assert_array_equal(to_numpy(got), w[index])
    assert_same_bits(vkml.embedding(i, weight), got)  # torch's order
    g = rounded(rng.standard_normal((*shape, 8)), dtype)
    got.backward(tensor(g, dtype, device))
    expected = np.zeros((5, 8), np.float64 if dtype == "float64" else np.float32)
    np.add.at(expected, index.ravel(), g.reshape(-1, 8).astype(expected.dtype))
    assert_close(weight.grad, rounded(expected, dtype))


def test_embedding_padding(device: str) -> None:
    weight = vkml.ones((4, 2), device=device).requires_grad_()
    index = vkml.tensor([1, 1, 3], device=device)
    vkml.embedding(weight, index, padding_idx=3).backward(vkml.ones((3, 2), device=device))
    assert weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]
    weight.zero_grad()
    vkml.embedding(weight, index, padding_idx=-3).backward(vkml.ones((3, 2), device=device))
    assert weight.grad.tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize("dtype", ["bool", "float32", "float16", "int64"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4, 5), (0, 2)])
def test_nonzero(device: str, rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> None:
    x = rounded(rng.integers(0, 2, shape), dtype)
    got = vkml.nonzero(tensor(x, dtype, device))
    expected = np.argwhere(x) if shape else np.zeros((int(x != 0), 0), np.int64)
    np.testing.assert_array_equal(got.numpy(), expected)


def test_masked_select(device: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4)).astype(np.float32)
    t = tensor(x, device=device, requires_grad=True)
    mask = x > 0
    got = vkml.masked_select(t, vkml.tensor(mask, device=device))
    np.testing.assert_array_equal(to_numpy(got), x[mask])
    got.backward(vkml.ones(got.shape, device=device))
    np.testing.assert_array_equal(t.grad.numpy(), mask.astype(np.float32))
    column = vkml.tensor([[True], [False], [True]], device=device)
    np.testing.assert_array_equal(to_numpy(t.masked_select(column)), x[[0, 2]].ravel())


BAD = [
    ("gather", lambda x, bad: vkml.gather(x, 0, bad.unsqueeze(1).expand(3, 4)), True),
    ("index_select", lambda x, bad: vkml.index_select(x, 0, bad), True),
    ("scatter_add", lambda x, bad: vkml.scatter_add(x, 0, bad.unsqueeze(1).expand(3, 4), x[:3]), True),
    ("scatter_add", lambda x, bad: vkml.scatter_add(x[:3], 0, bad, 6), True),
    ("index_add", lambda x, bad: vkml.index_add(x, 0, bad, x[:3]), True),
    ("embedding", lambda x, bad: vkml.embedding(x, bad), True),
    ("index", lambda x, bad: x[bad], False),
    ("index", lambda x, bad: x[:, 0][bad], False),
]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(6, "int64"), (2**31 + 1, "int64"), (2**40, "int64"), (-1, "int64"), (-7, "int64"), (-(2**62), "int64"),
     (2**63 - 1, "int64"), (-(2**63), "int64"), (-(2**63) + 1, "int64"), (-(2**31), "int64"),
     (6, "int32"), (2**31 - 1, "int32"), (-1, "int32"), (-7, "int32"), (-(2**31), "int32")],
)  # fmt: skip
@pytest.mark.parametrize(("op", "call", "negative"), BAD)
def test_values_out_of_range(device: str, op: str, call: object, negative: bool, value: int, dtype: str) -> None:
    x = tensor(np.arange(24.0).reshape(6, 4), device=device)
    bad = vkml.tensor([0, value, 1], dtype=dtype, device=device)
    if not negative and -6 <= value < 0:  # x[...] wraps this one
        assert_same_bits(call(x, bad), call(x, vkml.tensor([0, value + 6, 1], device=device)))  # type: ignore[operator]
        return
    first = 0 if negative else -6  # of a subscript
    with pytest.raises(vkml.IndexError_, match=rf"{op}: expected an index in \[{first}, 6\), got {value}"):
        call(x, bad).numpy()  # type: ignore[operator]
    # The device goes on, and nothing was written.
    np.testing.assert_array_equal(x.numpy(), np.arange(24.0).reshape(6, 4))
    good = vkml.index_select(x, 0, vkml.tensor([5, 0], device=device))
    np.testing.assert_array_equal(good.numpy(), np.arange(24.0).reshape(6, 4)[[5, 0]])


def test_first_fault_is_raised_once(device: str) -> None:
    x = vkml.ones((4,), device=device)
    with pytest.raises(vkml.IndexError_):
        vkml.index_select(x, 0, vkml.tensor([9], device=device)).numpy()
    vkml.synchronize()
    assert x.tolist() == [1, 1, 1, 1]


def ones(d: str, *shape: int) -> vkml.Tensor:
    return vkml.ones(shape, device=d)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda d: vkml.gather(ones(d, 2, 3), 0, vkml.tensor([0], device=d)),
            "ShapeError",
            "gather: index: expected rank 2",
        ),
        (
            lambda d: vkml.gather(ones(d, 2, 3), 2, vkml.tensor([[0]], device=d)),
            "IndexError_",
            r"gather: expected dim in \[-2, 1\], got 2",
        ),
        (
            lambda d: vkml.gather(ones(d, 2, 3), 0, vkml.zeros((1, 4), dtype="int64", device=d)),
            "ShapeError",
            "gather: index: expected at most",
        ),
        (
            lambda d: vkml.index_select(ones(d, 2), 0, vkml.tensor([[0]], device=d)),
            "ShapeError",
            "index_select: index: expected rank 0 or 1",
        ),
        (
            lambda d: vkml.index_add(ones(d, 2), 0, vkml.tensor([0], device=d), ones(d, 2)),
            "ShapeError",
            r"index_add: source: expected shape \(1,\), got \(2,\)",
        ),
        (
            lambda d: vkml.scatter_add(ones(d, 2), 0, vkml.tensor([0], device=d), 3),
            "ShapeError",
            r"scatter_add: index: expected shape \(2,\), got \(1,\)",
        ),
        (
            lambda d: vkml.embedding(ones(d, 2), vkml.tensor([0], device=d)),
            "ShapeError",
            "embedding: weight: expected rank 2",
        ),
        (
            lambda d: vkml.embedding(ones(d, 2, 2), vkml.tensor([0], device=d), 2),
            "ShapeError",
            "embedding: padding_idx: expected",
        ),
        (lambda d: vkml.masked_select(ones(d, 2), ones(d, 2)), "DTypeError", "masked_select: mask: expected bool"),
        (
            lambda d: vkml.index_select(ones(d, 0, 2), 0, vkml.tensor([0], device=d)),
            "IndexError_",
            "index_select: expected an index into a non-empty axis",
        ),
    ],
)
def test_errors(device: str, call: object, error: str, text: str) -> None:
    with pytest.raises(getattr(vkml, error), match=text):
        call(device)  # type: ignore[operator]


def test_subscripts_say_what_does_not_fit(device: str) -> None:
    x = vkml.arange(5, dtype="float32", device=device)
    with pytest.raises(vkml.DTypeError, match=r"^index: expected int64, int32 or bool, got float32$"):
        x[vkml.tensor([0.5], device=device)]
    for key, got in (([0, 7], 7), ([-6], -6)):
        with pytest.raises(vkml.IndexError_, match=rf"^index: expected an index in \[-5, 5\), got {got}$"):
            x[key].tolist()
    with pytest.raises(vkml.IndexError_, match=r"^index_select: expected an index in \[0, 5\), got -1$"):
        vkml.index_select(x, 0, vkml.tensor([-1], device=device)).tolist()

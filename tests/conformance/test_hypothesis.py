"""Random shapes, strides, indices and axes: whatever Hypothesis comes up with, vkml does what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close, tensor, to_numpy
from hypothesis import given
from hypothesis import strategies as st

import vkml

SHAPE = st.lists(st.integers(0, 5), max_size=4).map(tuple)
FULL = st.lists(st.integers(1, 5), max_size=4).map(tuple)  # no empty axis


def counting(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Small distinct integers, so that every answer is exact."""
    return ((np.arange(int(np.prod(shape))) * 7) % 61 - 30).reshape(shape).astype(dtype)


def both(a: np.ndarray, device: str) -> tuple[vkml.Tensor, np.ndarray]:
    return tensor(a, str(a.dtype), device), a


@st.composite
def key_for(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices with a positive step, None and one Ellipsis, for some of the axes."""
    axes = list(shape[: draw(st.integers(0, len(shape)))])
    key: list[Any] = []
    for n in axes:
        bound = st.none() | st.integers(-n - 2, n + 2)
        choices = [st.builds(slice, bound, bound, st.none() | st.integers(1, 3))]
        if n > 0:
            choices.append(st.integers(-n, n - 1))
        key.append(draw(st.one_of(choices)))
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()):
        key.append(Ellipsis)
    return tuple(key)


@st.composite
def view_chain(draw: Any) -> tuple[tuple[int, ...], list[tuple[str, Any]]]:
    """A shape and a chain of views of it."""
    shape = draw(FULL)
    a = np.empty(shape)
    chain: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["permute", "index", "expand", "reshape"]))
        if kind == "permute":
            step = (kind, tuple(draw(st.permutations(range(a.ndim)))))
        elif kind == "index":
            step = (kind, draw(key_for(a.shape)))
        elif kind == "expand":
            target = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in a.shape)
            step = (kind, (draw(st.integers(1, 2)), *target) if a.ndim < 5 else target)
        else:
            step = (kind, (-1,) if a.size else a.shape)
        nexts = apply_numpy(a, step)
        if nexts.ndim > 6 or nexts.size > 2000:
            break
        a = nexts
        chain.append(step)
    return shape, chain


def apply_numpy(a: np.ndarray, step: tuple[str, Any]) -> np.ndarray:
    kind, value = step
    if kind == "permute":
        return a.transpose(value)
    if kind == "index":
        return np.asarray(a[value])
    return np.broadcast_to(a, value) if kind == "expand" else a.reshape(value)


def apply_vkml(t: vkml.Tensor, step: tuple[str, Any]) -> vkml.Tensor:
    kind, value = step
    if kind == "index":
        return t[value]
    return getattr(t, kind)(*value)


@given(made=view_chain())
def test_views(made: tuple[Any, Any], device: str) -> None:
    shape, chain = made
    t, a = both(counting(shape), device)
    for step in chain:
        t, a = apply_vkml(t, step), apply_numpy(a, step)
        assert tuple(t.shape) == a.shape
    assert_close(t, a)
    assert_close(t + 1, a + 1)  # a kernel that reads the strides
    assert_close(t.contiguous() if a.size else t, a)


@given(made=view_chain(), data=st.data())
def test_view_gradient_lands_where_the_view_reads(made: tuple[Any, Any], data: Any, device: str) -> None:
    shape, chain = made
    leaf = tensor(counting(shape), "float32", device, requires_grad=True)
    t: Any = leaf
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    for step in chain:
        t, positions = apply_vkml(t, step), apply_numpy(positions, step)
    weight = counting(positions.shape)
    (t * tensor(weight, "float32", device)).sum().backward()
    expected = np.bincount(positions.ravel(), weight.ravel(), minlength=int(np.prod(shape))).reshape(shape)
    assert_close(leaf.grad, expected)


@given(shape=SHAPE, data=st.data())
def test_getitem(shape: tuple[int, ...], data: Any, device: str) -> None:
    t, a = both(counting(shape), device)
    key = data.draw(key_for(shape))
    assert_close(t[key], a[key], what=str(key))


@given(shape=FULL, data=st.data())
def test_setitem(shape: tuple[int, ...], data: Any, device: str) -> None:
    t, a = both(counting(shape), device)
    a = a.copy()
    key = data.draw(key_for(shape))
    target = np.asarray(a[key])
    value = counting(target.shape[data.draw(st.integers(0, target.ndim)) :]) + 100
    a[key] = value
    t[key] = tensor(value, "float32", device)
    assert_close(t, a, what=str(key))
    t[key] = 5
    a[key] = 5
    assert_close(t, a, what=str(key))


@given(shape=FULL.filter(len), data=st.data())
def test_integer_arrays_and_masks(shape: tuple[int, ...], data: Any, device: str) -> None:
    t, a = both(counting(shape), device)
    n = shape[0]
    index = np.array(data.draw(st.lists(st.integers(-n, n - 1), max_size=6)), np.int64)
    assert_close(t[tensor(index, "int64", device)], a[index])
    assert_close(t[index.tolist()] if index.size else t[tensor(index, "int64", device)], a[index])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert_close(t[tensor(mask, "bool", device)], a[mask])


@given(data=st.data())
def test_broadcasting(data: Any, device: str) -> None:
    result = data.draw(SHAPE)
    shapes = []
    for _ in range(2):
        kept = result[data.draw(st.integers(0, len(result))) :]
        shapes.append(tuple(1 if data.draw(st.booleans()) else n for n in kept))
    (x, a), (y, b) = (both(counting(s), device) for s in shapes)
    assert_close(x + y, a + b)
    assert_close(x * y - y, a * b - b)
    assert_close(vkml.maximum(x, y), np.maximum(a, b))
    assert_close(x < y, a < b)
    assert_close(vkml.where(x < y, x, y), np.where(a < b, a, b))


@given(data=st.data(), shapes=st.tuples(SHAPE, SHAPE))
def test_shapes_that_do_not_broadcast_are_refused(data: Any, shapes: Any, device: str) -> None:
    try:
        np.broadcast_shapes(*shapes)
        fits = True
    except ValueError:
        fits = False
    x, y = (tensor(counting(s), "float32", device) for s in shapes)
    if fits:
        assert tuple((x + y).shape) == np.broadcast_shapes(*shapes)
    else:
        with pytest.raises(vkml.ShapeError, match="add: expected shapes that broadcast, got"):
            x + y


@given(shape=SHAPE, data=st.data())
def test_reductions(shape: tuple[int, ...], data: Any, device: str) -> None:
    axes = data.draw(st.none() | st.lists(st.integers(0, max(len(shape) - 1, 0)), min_size=1, max_size=4, unique=True))
    if axes is not None:
        axes = tuple(i - len(shape) if data.draw(st.booleans()) and shape else i for i in axes)
    np_axes = None if axes is None or not shape else axes
    keepdim = data.draw(st.booleans())
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    base = counting(tuple(shape[i] for i in np.argsort(order))) if shape else counting(())
    t, a = tensor(base, "float32", device), base
    if shape:
        t, a = t.permute(*order), a.transpose(order)
    assert a.shape == shape
    dim = None if axes is None else list(axes)
    assert_close(vkml.sum(t, dim, keepdim), a.sum(np_axes, keepdims=keepdim))
    if a.size:
        assert_close(
            vkml.mean(t, dim, keepdim), a.astype(np.float64).mean(np_axes, keepdims=keepdim), rtol=1e-6, atol=1e-6
        )
        assert_close(vkml.amax(t, dim, keepdim), a.max(np_axes, keepdims=keepdim))
        assert_close(vkml.amin(t, dim, keepdim), a.min(np_axes, keepdims=keepdim))
        variance = a.astype(np.float64).var(np_axes, keepdims=keepdim)
        assert_close(vkml.var(t, dim, correction=0, keepdim=keepdim), variance, rtol=1e-5, atol=1e-4)


@given(shape=FULL.filter(len), data=st.data())
def test_gather_and_scatter_add(shape: tuple[int, ...], data: Any, device: str) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, 6))
    index_shape = (*shape[:axis], count, *shape[axis + 1 :])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    index = rng.integers(0, shape[axis], index_shape)
    t, a = both(counting(shape), device)
    i = tensor(index, "int64", device)
    assert_close(vkml.gather(t, axis, i), np.take_along_axis(a, index, axis))
    source = counting(index_shape)
    expected = a.copy()
    for at in np.ndindex(*index_shape):
        expected[(*at[:axis], index[at], *at[axis + 1 :])] += source[at]
    assert_close(vkml.scatter_add(t, axis, i, tensor(source, "float32", device)), expected)


@given(shape=FULL, data=st.data())
def test_cat_and_split(shape: tuple[int, ...], data: Any, device: str) -> None:
    if not shape:
        shape = (2,)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    arrays = []
    for size in sizes:
        s = list(shape)
        s[axis] = size
        arrays.append(counting(tuple(s)))
    joined = vkml.cat([tensor(a, "float32", device) for a in arrays], axis)
    assert_close(joined, np.concatenate(arrays, axis))
    for part, a in zip(vkml.split(joined, sizes, axis), arrays, strict=True):
        assert_close(part, a)


@given(n=st.integers(1, 40), k=st.integers(0, 40), m=st.integers(1, 40), data=st.data())
def test_matmul_of_small_integers_is_exact(n: int, k: int, m: int, data: Any, device: str) -> None:
    a, b = counting((n, k)), counting((k, m))
    x, y = tensor(a, "float32", device), tensor(b, "float32", device)
    if data.draw(st.booleans()):
        x = tensor(a.T.copy(), "float32", device).transpose(0, 1)
    if data.draw(st.booleans()):
        y = tensor(b.T.copy(), "float32", device).transpose(0, 1)
    assert_close(to_numpy(x @ y), a @ b)

"""x[...] and x[...] = v: any mix of ints, slices, None, Ellipsis, masks and integer arrays, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import ALL, assert_same_bits, rounded, tensor, to_numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkml

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SHAPE = st.lists(st.integers(0, 5), min_size=0, max_size=4).map(tuple)


@st.composite
def basic_keys(draw: Any, shape: tuple[int, ...]) -> tuple:
    """Ints, forward slices, None and at most one Ellipsis; the result keeps to rank 8."""
    key: list[Any] = []
    axes = draw(st.integers(0, len(shape)))
    for extent in shape[:axes]:
        while draw(st.integers(0, 5)) == 0 and key.count(None) < 8 - len(shape):
            key.append(None)
        if extent and draw(st.booleans()):
            key.append(draw(st.integers(-extent, extent - 1)))
        else:
            bound = st.none() | st.integers(-7, 7)
            key.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
    if (axes == len(shape) and draw(st.booleans())) or draw(st.booleans()):
        key.insert(len(key) if axes < len(shape) else draw(st.integers(0, len(key))), Ellipsis)
    return tuple(key)


@st.composite
def advanced_keys(draw: Any, shape: tuple[int, ...]) -> tuple:
    """Integer arrays that broadcast and one mask at most, with slices between; no ints, where NumPy and torch part."""
    batch = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    key: list[Any] = []
    axis, masked = 0, False
    while axis < len(shape) and len(key) < 4:
        kind = draw(st.sampled_from(["slice", "array", "array", "mask", "none"]))
        if kind == "array" and shape[axis]:
            dims = draw(st.sampled_from([batch, batch[1:], (1,) * len(batch)]))
            count = int(np.prod(dims))
            values = draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=count, max_size=count))
            key.append(np.array(values, np.int64).reshape(dims))
        elif kind == "mask" and not masked and batch in ((), (1,)):
            rank = draw(st.integers(1, min(2, len(shape) - axis)))
            count = int(np.prod(shape[axis : axis + rank]))
            values = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            key.append(np.array(values, bool).reshape(shape[axis : axis + rank]))
            masked = True
            axis += rank - 1
        elif kind == "none":
            key.append(None)
            continue
        else:
            key.append(slice(draw(st.none() | st.integers(0, 3)), None, draw(st.integers(1, 2))))
        axis += 1
    return tuple(key)


def on(device: str, key: Any) -> Any:
    """The key with its arrays as tensors; some stay NumPy arrays or become lists, which must mean the same."""
    if isinstance(key, tuple):
        return tuple(on(device, k) for k in key)
    if isinstance(key, np.ndarray):
        if key.ndim == 0:
            return vkml.tensor(key, device=device)
        narrow = {} if key.dtype == bool else {"dtype": "int32"}
        same = [
            vkml.tensor(key, device=device),
            vkml.tensor(key, device=device, **narrow),
            key,
            key.tolist() if key.size else key,
        ]
        return same[int(key.sum()) % 4]
    return key


@QUICK
@given(data=st.data(), shape=SHAPE)
def test_basic_reads_are_views(device: str, data: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    key = data.draw(basic_keys(shape))
    got = tensor(x, device=device)[key]
    np.testing.assert_array_equal(got.numpy(), x[key])
    transposed = tensor(x.T.copy(), device=device).permute(*range(len(shape))[::-1])[key]
    np.testing.assert_array_equal(transposed.numpy(), x[key])


@QUICK
@given(data=st.data(), shape=SHAPE)
def test_basic_writes(device: str, data: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    key = data.draw(basic_keys(shape))
    t = tensor(x, device=device)
    shown = x[key].shape
    value = -np.arange(1.0, 1 + np.prod(shown[-1:]), dtype=np.float32).reshape(shown[-1:])
    x[key] = value
    t[key] = tensor(value, device=device)
    np.testing.assert_array_equal(t.numpy(), x)
    x[key] = 7
    t[key] = 7
    np.testing.assert_array_equal(t.numpy(), x)


@QUICK
@given(data=st.data(), shape=SHAPE.filter(lambda s: len(s) > 0))
def test_advanced_reads(device: str, data: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    key = data.draw(advanced_keys(shape))
    np.testing.assert_array_equal(tensor(x, device=device)[on(device, key)].numpy(), x[key])


@QUICK
@given(data=st.data(), shape=SHAPE.filter(lambda s: len(s) > 0))
def test_advanced_writes(device: str, data: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    key = data.draw(advanced_keys(shape))
    t = tensor(x, device=device)
    value = -1 - np.arange(int(np.prod(x[key].shape)), dtype=np.float32).reshape(x[key].shape)
    x[key] = value
    t[on(device, key)] = tensor(value, device=device)
    np.testing.assert_array_equal(t.numpy(), x)


@QUICK
@given(data=st.data(), shape=SHAPE.filter(lambda s: len(s) > 0), advanced=st.booleans())
def test_gradient_of_a_read_lands_where_it_came_from(
    device: str, data: Any, shape: tuple[int, ...], advanced: bool
) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    key = data.draw(advanced_keys(shape) if advanced else basic_keys(shape))
    t = tensor(x, device=device, requires_grad=True)
    got = t[on(device, key)]
    g = 1 + np.arange(int(np.prod(got.shape)), dtype=np.float32).reshape(got.shape)
    got.backward(tensor(g, device=device))
    expected = np.zeros_like(x)
    np.add.at(expected, key, g)
    np.testing.assert_array_equal(t.grad.numpy(), expected)


@pytest.mark.parametrize("dtype", ALL)
def test_dtypes(device: str, rng: np.random.Generator, dtype: str) -> None:
    x = rounded(rng.integers(0, 2 if dtype == "bool" else 100, (5, 6, 7)), dtype)
    t = tensor(x, dtype, device)
    for key in [
        (2,),
        (slice(1, 4), -1),
        ([0, 3, 3],),
        (slice(None), [1, 2]),
        ([0, 1], slice(None), [2, 2]),
        (x[..., 0] > 0,),
    ]:
        np.testing.assert_array_equal(to_numpy(t[key if len(key) > 1 else key[0]]), x[key])
        y, u = x.copy(), t.clone()
        y[key] = x[key][::-1] if x[key].ndim else x[key]
        u[key] = tensor(y[key], dtype, device)
        np.testing.assert_array_equal(to_numpy(u), y)


def test_torch_rules(device: str) -> None:
    x = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
    t = tensor(x, device=device)
    # An int is taken first, as a view: what is left decides where the arrays' axes go (NumPy: (2, 4)).
    assert tuple(t[0, :, [1, 2]].shape) == (4, 2)
    np.testing.assert_array_equal(t[0, :, [1, 2]].numpy(), x[0][:, [1, 2]])
    np.testing.assert_array_equal(t[vkml.tensor(2, device=device)].numpy(), x[2])
    np.testing.assert_array_equal(t[True].numpy(), x[True])
    np.testing.assert_array_equal(t[False].numpy(), x[False])
    np.testing.assert_array_equal(t[np.int64(1), np.array(2)].numpy(), x[1, 2])
    np.testing.assert_array_equal(t[[]].numpy(), x[[]])
    np.testing.assert_array_equal(t[:, vkml.tensor([1, -1], dtype="int32", device=device)].numpy(), x[:, [1, -1]])
    assert len(list(t)) == 3


def test_basic_index_shares_memory(device: str) -> None:
    t = vkml.zeros((3, 4), device=device)
    t[1, 1:3][0] = 5
    t[..., None, -1][0] = 7
    assert t.tolist() == [[0, 0, 0, 7], [0, 5, 0, 0], [0, 0, 0, 0]]


def test_overlapping_source_is_read_first(device: str) -> None:
    t = vkml.arange(8, device=device)
    t[1:] = t[:-1]
    assert t.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    t[[0, 1, 2]] = t[[2, 3, 4]]
    assert t.tolist() == [1, 2, 3, 2, 3, 4, 5, 6]
    t[[1, 2, 3]] = t[:3]
    assert t.tolist() == [1, 1, 2, 3, 3, 4, 5, 6]


def test_last_of_repeated_places_wins(device: str) -> None:
    t = vkml.zeros((3, 500), device=device)
    t[vkml.tensor([1, 0, 1, 1, 0], device=device)] = tensor(np.arange(5.0)[:, None] * np.ones(500), device=device)
    np.testing.assert_array_equal(t.numpy()[:, 17], [4, 3, 0])


def test_values_are_converted(device: str) -> None:
    t = vkml.zeros((4,), dtype="int64", device=device)
    t[0] = 2.7
    t[1] = tensor(-1.5, device=device)
    t[2:] = [True, False]
    assert t.tolist() == [2, -1, 1, 0]
    h = vkml.zeros((2,), dtype="float16", device=device)
    h[[0]] = tensor([65520.0], device=device)
    assert h.tolist() == [float("inf"), 0]
    t[:] = np.arange(4)[None]  # leading ones may go
    assert t.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("key", [1, (slice(None), 2), [0, 2], (slice(1, 3), [1, 0]), "mask", (0, [1, 2])])
def test_write_is_differentiable(device: str, rng: np.random.Generator, key: Any) -> None:
    a, g = (rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
    key = a > 0 if isinstance(key, str) else key
    v = rng.standard_normal(a[key].shape).astype(np.float32)
    x, value = tensor(a, device=device, requires_grad=True), tensor(v, device=device, requires_grad=True)
    y = x * 2.0
    y[on(device, key)] = value
    (y * y).backward(tensor(g, device=device))
    expected = 2 * a
    expected[key] = v
    upstream = 2 * expected * g
    np.testing.assert_allclose(value.grad.numpy(), upstream[key], rtol=1e-6)
    upstream[key] = 0
    np.testing.assert_allclose(x.grad.numpy(), 2 * upstream, rtol=1e-6)


def test_broadcast_value_gets_the_sum(device: str) -> None:
    y = vkml.zeros((3, 4), device=device)
    value = tensor([1.0], device=device, requires_grad=True)
    y[1:] = value
    assert y.requires_grad
    y.backward(vkml.ones((3, 4), device=device))
    assert value.grad.tolist() == [8]


def test_second_order_through_a_write(device: str) -> None:
    x = tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = x * x
    y[1] = x[0] * x[0] * x[0]
    (first,) = vkml.grad((y * y).sum(), [x], create_graph=True)  # x0^4 + x0^6 + x2^4
    (second,) = vkml.grad(first.sum(), [x])
    assert first.tolist() == [10, 0, 108] and second.tolist() == [42, 0, 108]
    index = vkml.tensor([0, 0, 2], device=device)
    (first,) = vkml.grad((x[index] * x[index] * x[index]).sum(), [x], create_graph=True)
    (second,) = vkml.grad(first.sum(), [x])
    assert first.tolist() == [6, 0, 27] and second.tolist() == [12, 0, 18]


def test_a_saved_value_that_changes_is_noticed(device: str) -> None:
    x = tensor([1.0, 2.0], device=device, requires_grad=True)
    y = x * 1.0
    z = y * y
    y[0] = 5
    with pytest.raises(vkml.Error, match="modified in place"):
        z.sum().backward()


def test_leaf_and_views_are_refused(device: str) -> None:
    x = tensor([1.0, 2.0], device=device, requires_grad=True)
    for key in (0, [0]):
        with pytest.raises(vkml.Error, match="leaf"):
            x[key] = 1.0
    with vkml.no_grad():
        x[0] = 4.0
    assert x.tolist() == [4, 2]
    owner = x * 2.0
    with pytest.raises(vkml.Error, match="view"):
        owner[0:1][0] = 1.0
    with pytest.raises(vkml.Error, match="expanded"):
        vkml.zeros((1,), device=device).expand(4)[0:2] = 1.0


@pytest.mark.parametrize("value", [3, -4, 2**31, -(2**31), 2**63 - 1, -(2**63)])
def test_write_out_of_range_touches_nothing(device: str, value: int) -> None:
    t = vkml.arange(12, device=device).reshape(3, 4)
    with pytest.raises(vkml.IndexError_, match=rf"index: expected an index in \[-3, 3\), got {value}"):
        t[vkml.tensor([1, value], device=device)] = 0
        t.numpy()
    expected = np.arange(12).reshape(3, 4)
    if device != "cpu":
        expected[1] = 0  # the valid part of the write had been recorded
    np.testing.assert_array_equal(t.numpy(), expected)


def test_devices_agree(vulkan: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((300, 70)).astype(np.float32)
    i, j = rng.integers(0, 300, 500), rng.integers(0, 70, 500)
    results = []
    for d in ("cpu", vulkan):
        t = tensor(x, device=d, requires_grad=True)
        y = t[vkml.tensor(i, device=d), vkml.tensor(j, device=d)]
        (y * y).backward(tensor(np.linspace(-3, 5, 500), device=d))
        results.append(t.grad)
    assert_same_bits(*results)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (3, IndexError, r"index: expected an index in \[-3, 3\) for axis 0, got 3"),
        ((0, -5), IndexError, r"index: expected an index in \[-4, 4\) for axis 1, got -5"),
        ((0, 0, 0), IndexError, r"index: expected at most 2 indices for shape \(3, 4\), got 3"),
        ((..., 0, ...), IndexError, "index: expected at most one Ellipsis, got 2"),
        (slice(None, None, -1), ValueError, "index: expected a slice step > 0, got -1"),
        (slice(None, None, 0), ValueError, "step"),
        (1.5, IndexError, r"index: expected ints, slices, .*, got 1.5"),
        ("a", IndexError, r"index: expected ints, slices, .*, got 'a'"),
        ([0.5], IndexError, r"index: expected ints, slices"),
        (
            np.array([True, False]),
            IndexError,
            r"index: expected a mask that fits \(3, 4\) from axis 0 on, got shape \(2,\)",
        ),
        (([0, 1], [0, 1, 2]), ValueError, "index: .*"),
        (10**30, IndexError, "index: expected an index in"),
    ],
)
def test_errors(device: str, key: Any, error: type, text: str) -> None:
    t = vkml.zeros((3, 4), device=device)
    with pytest.raises(error, match=text):
        t[key]
    with pytest.raises(error, match=text):
        t[key] = 1.0


def test_value_errors(device: str) -> None:
    t = vkml.zeros((3, 4), device=device)
    for key in (0, [0, 1]):
        with pytest.raises(vkml.ShapeError, match="index: "):
            t[key] = vkml.zeros((3,), device=device)
    assert t.tolist() == np.zeros((3, 4)).tolist()


def test_index_on_another_device(vulkan: str) -> None:
    with pytest.raises(vkml.DeviceError, match="index"):
        vkml.zeros((3,), device=vulkan)[vkml.tensor([0], device="cpu")]

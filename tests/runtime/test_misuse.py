"""Bad input: the right class, a text that names operator, expected and got, and nothing changed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers import assert_close, tensor

import vkml


def test_too_large_an_allocation_names_bytes_and_limit(device: str) -> None:
    before = vkml.memory_stats(device)["in_use_bytes"]
    with pytest.raises(vkml.OutOfMemoryError) as caught:
        vkml.zeros((1 << 36, 8), device=device)  # 2 TiB
    text = str(caught.value)
    assert isinstance(caught.value, MemoryError)
    assert str(1 << 41) in text, text
    limit = re.search(r"(\d+) bytes \(([^)]+)\)", text)
    assert limit and int(limit[1]) < 1 << 41, text
    assert vkml.memory_stats(device)["in_use_bytes"] == before
    assert float(vkml.ones((4,), device=device).sum()) == 4.0


def test_sizes_beyond_int64_are_refused(device: str) -> None:
    with pytest.raises(vkml.Error):
        vkml.zeros((1 << 40, 1 << 40), device=device)
    with pytest.raises(vkml.OutOfMemoryError):
        vkml.zeros((1 << 62,), device=device)
    with pytest.raises(vkml.ShapeError):
        vkml.zeros((-1,), device=device)
    with pytest.raises(vkml.ShapeError):
        vkml.zeros((1,) * 9, device=device)


def test_mixed_devices_are_refused(vulkan: str) -> None:
    a, b = vkml.ones((2,), device="cpu"), vkml.ones((2,), device=vulkan)
    for call in (lambda: a + b, lambda: b @ a, lambda: vkml.cat([a, b]), lambda: vkml.where(a > 0, a, b)):
        with pytest.raises(vkml.DeviceError, match="expected tensors on one device, got") as caught:
            call()
        assert "cpu" in str(caught.value) and "vulkan:0" in str(caught.value)


@pytest.mark.parametrize("bad", ["gpu", "cuda", "vulkan:x", "vulkan:-1", "", "cpu:1"])
def test_unknown_devices_are_refused(bad: str) -> None:
    with pytest.raises(vkml.DeviceError, match="expected"):
        vkml.device(bad)


def test_missing_device_is_refused() -> None:
    with pytest.raises(vkml.DeviceError):
        vkml.zeros((1,), device="vulkan:60")


def test_index_out_of_range_never_reads_past_the_end(device: str) -> None:
    x = tensor(np.arange(12).reshape(4, 3), "float32", device)
    for index in ([0, 4], [-1, 0], [1 << 40, 0]):
        i = tensor(np.array(index), "int64", device)
        for call in (
            lambda i=i: vkml.index_select(x, 0, i),
            lambda i=i: vkml.embedding(x, i),
            lambda i=i: vkml.gather(x, 0, i.reshape(2, 1)),
            lambda i=i: vkml.scatter_add(x, 0, i.reshape(2, 1), vkml.ones((2, 1), device=device)),
        ):
            with pytest.raises(vkml.IndexError_, match=r"expected an index in \[0, 4\), got"):
                call().numpy()
    assert_close(x, np.arange(12).reshape(4, 3))
    assert_close(vkml.index_select(x, 0, tensor(np.array([3]), "int64", device)), np.array([[9, 10, 11]]))


def test_integer_division_by_zero(device: str) -> None:
    a, zero = tensor(np.array([5, 6]), "int64", device), tensor(np.array([1, 0]), "int64", device)
    for op in (vkml.floor_divide, vkml.remainder):
        with pytest.raises(vkml.Error, match="expected a non-zero integer divisor, got 0"):
            op(a, zero).numpy()


def test_saved_value_changed_in_place_is_detected(device: str) -> None:
    x = tensor(np.ones(3), "float32", device, requires_grad=True)
    w = tensor(np.full(3, 2.0), "float32", device)
    y = (x * w).sum()
    w[0] = 7.0
    with pytest.raises(
        vkml.Error, match="mul: expected input 1 unchanged since the forward, got one modified in place"
    ):
        y.backward()
    assert x.grad is None


def test_in_place_change_of_a_leaf_is_refused(device: str) -> None:
    x = tensor(np.ones(3), "float32", device, requires_grad=True)
    with pytest.raises(vkml.Error, match="leaf"):
        x[0] = 5.0
    assert_close(x, np.ones(3))
    with vkml.no_grad():
        x[0] = 5.0
    assert_close(x, np.array([5.0, 1, 1]))


def test_freed_graph_is_refused(device: str) -> None:
    x = tensor(np.ones(3), "float32", device, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(vkml.Error, match="retain_graph"):
        y.backward()
    assert_close(x.grad, np.full(3, 2.0))


def test_error_changes_nothing(device: str) -> None:
    x = tensor(np.ones((2, 3)), "float32", device, requires_grad=True)
    before = vkml.memory_stats(device)["live_allocations"]
    dispatched = vkml.dispatch_count(device)
    for call, error in (
        (lambda: x + vkml.ones((4,), device=device), vkml.ShapeError),
        (lambda: x.reshape(4, 4), vkml.ShapeError),
        (lambda: x.permute(0, 0), vkml.ShapeError),
        (lambda: vkml.softmax(x, 2), vkml.IndexError_),
        (lambda: vkml.sum(x, 5), vkml.IndexError_),
        (lambda: x @ x, vkml.ShapeError),
        (lambda: x.backward(), vkml.Error),
        (lambda: x[5], vkml.IndexError_),
        (lambda: x[0, 0, 0], vkml.IndexError_),
        (lambda: vkml.cross_entropy(x, vkml.ones((2,), device=device)), vkml.Error),
    ):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, (vkml.Error, IndexError, ValueError))
    del caught, call
    import gc

    gc.collect()
    assert vkml.memory_stats(device)["live_allocations"] <= before
    assert x.grad is None
    assert vkml.dispatch_count(device) <= dispatched + 8  # the operands of the calls above

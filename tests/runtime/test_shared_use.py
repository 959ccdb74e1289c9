"""Tensors, graphs and captures shared by threads, hooks that misbehave, and memory asked for beyond reason."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

import vkml


def leaf(device: str, n: int = 3) -> vkml.Tensor:
    return vkml.ones((n,), device=device, requires_grad=True)


def together(*work: Callable[[], None]) -> list[BaseException]:
    """Runs each on a thread of its own; what they raised."""
    raised: list[BaseException] = []

    def guarded(f: Callable[[], None]) -> None:
        try:
            f()
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=guarded, args=(f,), daemon=True) for f in work]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "expected the threads to end, got a deadlock"
    return raised


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda g: vkml.ones((7,), device=g.device), vkml.ShapeError),
        (lambda g: g.double(), vkml.DTypeError),
        (lambda g: 3, vkml.DTypeError),
    ],
)
@pytest.mark.parametrize("on_leaf", [True, False])
def test_a_hook_returns_a_gradient_of_its_tensor(device: str, returned: Callable, error: type, on_leaf: bool) -> None:
    x = leaf(device)
    y = x * 2
    (x if on_leaf else y).register_hook(returned)
    with pytest.raises(error, match=r"hook: expected .*, got"):
        y.sum().backward()
    assert x.grad is None


def test_hooks_may_take_themselves_off(device: str) -> None:
    x = leaf(device)
    handles = []

    def hook(g: vkml.Tensor) -> vkml.Tensor:
        for h in handles:
            h.remove()
        return g * 3

    handles += [x.register_hook(hook) for _ in range(5)]
    x.sum().backward()
    assert x.grad.tolist() == [243.0] * 3
    x.sum().backward()
    assert x.grad.tolist() == [244.0] * 3


def test_a_removed_handle_stays_removed(device: str) -> None:
    x, called = leaf(device), []
    first = x.register_hook(lambda g: called.append(1))
    first.remove()
    x.register_hook(lambda g: called.append(2))
    first.remove()
    x.sum().backward()
    assert called == [2]


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda g: vkml.ones((7,), device=g.device), vkml.ShapeError),
        (lambda g: g.double(), vkml.DTypeError),
        (lambda g: [3], vkml.DTypeError),
    ],
)
def test_a_function_returns_gradients_of_its_inputs(device: str, returned: Callable, error: type) -> None:
    class Double(vkml.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: vkml.Tensor) -> vkml.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, g: vkml.Tensor) -> object:
            return returned(g)

    x = leaf(device)
    with pytest.raises(error, match=r"Double: backward: expected .*, got"):
        Double.apply(x).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    "write",
    [
        lambda b, w: b[0].__setitem__(1, w[0]),
        lambda b, w: b[0].__setitem__([0, 1, 2], w),
        lambda b, w: b.T.__setitem__((slice(None), 0), w),
        lambda b, w: b[0].copy_(w),
        lambda b, w: b[0].add_(w),
        lambda b, w: b.detach()[0].mul_(w),
    ],
)
def test_a_view_of_an_unrecorded_tensor_refuses_a_recorded_value(device: str, write: Callable) -> None:
    buffer, w = vkml.zeros((2, 3), device=device), leaf(device)
    with pytest.raises(vkml.Error, match="expected a target that owns its memory"):
        write(buffer, w)
    assert buffer.numpy().sum() == 0
    with vkml.no_grad():
        write(buffer, w)


def test_the_tensor_itself_takes_a_recorded_value(device: str) -> None:
    buffer, w = vkml.zeros((2, 3), device=device), leaf(device)
    seen = buffer[1]
    buffer[0] = w
    buffer[1, 2] = w[1] * 5
    buffer.sum().backward()
    assert w.grad.tolist() == [1.0, 6.0, 1.0]
    assert seen.tolist() == [0.0, 0.0, 5.0]


def test_gradients_are_read_and_hooked_while_a_backward_runs(device: str) -> None:
    w, done = leaf(device, 100), threading.Event()

    def train() -> None:
        try:
            for _ in range(200):
                (w * w).sum().backward()
                w.grad = None
        finally:
            done.set()

    def look() -> None:
        while not done.is_set():
            if (g := w.grad) is not None:
                assert g.shape == (100,)
            w.register_hook(lambda g: g).remove()

    assert together(train, look, look) == []


def test_threads_that_share_a_graph_free_it_once(device: str) -> None:
    for _ in range(10):
        x = leaf(device, 1000)
        y = x
        for _ in range(20):
            y = y * x
        loss = y.sum()
        kept = [lambda loss=loss: loss.backward(retain_graph=True)] * 3
        raised = together(*kept, *[loss.backward] * 3)
        assert all(isinstance(e, vkml.Error) and "retain_graph" in str(e) for e in raised)


def test_captures_of_several_threads_take_turns(device: str) -> None:
    def train() -> None:
        x = vkml.ones((1000,), device=device)
        for _ in range(30):
            vkml.capture(lambda: [x.add_(1) for _ in range(5)], device=device).replay()
        assert x.numpy().tolist() == [301.0] * 1000

    assert together(train, train, train) == []


def test_other_threads_work_while_a_capture_records(device: str) -> None:
    x = vkml.ones((1000,), device=device)
    inside, went_on = threading.Event(), threading.Event()
    seen: list[float] = []

    def record() -> None:
        def work() -> None:
            x.add_(1)
            inside.set()
            assert went_on.wait(30), "expected the other thread to go on, got none"
            x.mul_(2)

        vkml.capture(work, device=device).replay()

    def other() -> None:
        assert inside.wait(30)
        y = vkml.zeros((10,), device=device)
        y.zero_()
        y[0] = 3.0
        seen.append(y.sum().item())
        went_on.set()

    assert together(record, other) == []
    assert seen == [3.0]
    assert x[:2].tolist() == [10.0, 10.0]


def test_a_replay_reports_faults(device: str) -> None:
    x, places = vkml.ones((4,), device=device), vkml.tensor(np.array([0, 1]), device=device)
    made = []
    c = vkml.capture(lambda: made.append(x[places]), device=device)
    assert made[0].tolist() == [1.0, 1.0]
    places.copy_(vkml.tensor(np.array([0, 77]), device=device))
    with pytest.raises(vkml.IndexError_, match="got 77"):
        c.replay()
        made[0].tolist()


@pytest.mark.parametrize("elements", [2**40, 2**44, 2**60])
def test_an_allocation_beyond_the_device_is_refused(device: str, elements: int) -> None:
    with pytest.raises(vkml.OutOfMemoryError, match=r"allocation: expected .*, got"):
        vkml.empty((elements,), device=device)
    assert vkml.ones((2,), device=device).sum().item() == 2

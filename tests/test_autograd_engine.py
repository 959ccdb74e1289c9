"""The tape as Python sees it: accumulation, retention, hooks, modes, higher orders."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, tensor

import vkml


def leaf(values: object, device: str, dtype: str = "float32") -> vkml.Tensor:
    return tensor(np.asarray(values, np.float64), dtype, device, requires_grad=True)


def test_leaves_and_results(device: str) -> None:
    x = leaf([1, 2], device)
    y = x * 2.0
    assert x.is_leaf and x.requires_grad and x.grad is None and x.grad_fn is None
    assert not y.is_leaf and y.requires_grad and y.grad_fn is not None
    assert not y.detach().requires_grad
    with pytest.raises(vkml.DTypeError):
        vkml.tensor([1, 2], device=device).requires_grad_()
    with pytest.raises(vkml.Error):
        y.requires_grad_(False)


def test_gradients_add_up_until_cleared(device: str) -> None:
    x = leaf([1, 2], device)
    for i in range(1, 4):
        (x * x).sum().backward()
        assert_close(x.grad, np.array([2.0, 4.0]) * i)
    x.zero_grad()
    assert x.grad is None or not np.any(x.grad.numpy())


def test_gradient_argument(device: str) -> None:
    x = leaf([1, 2, 3], device)
    with pytest.raises(vkml.Error, match="expected a gradient for an output of shape"):
        (x * 2.0).backward()
    with pytest.raises(vkml.ShapeError):
        (x * 2.0).backward(vkml.ones((2,), device=device))
    (x * 2.0).backward(tensor([1, 10, 100], "float32", device))
    assert_close(x.grad, np.array([2.0, 20, 200]))
    with pytest.raises(vkml.Error, match="requires grad"):
        vkml.ones((), device=device).backward()


def test_diamond_and_reuse(device: str) -> None:
    x = leaf(3.0, device)
    y = x * x
    z = y * x + y + x
    z.backward()
    assert_close(x.grad, 3 * 9.0 + 2 * 3.0 + 1)


def test_retain_graph(device: str) -> None:
    x = leaf(3.0, device)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert_close(x.grad, 12.0)
    with pytest.raises(vkml.Error, match="retain_graph"):
        y.backward()


def test_grad_leaves_grad_alone(device: str) -> None:
    x, unused = leaf([1, 2], device), leaf(1.0, device)
    y = (x * x * x).sum()
    (first,) = vkml.grad([y], [x], create_graph=True)
    (second,) = vkml.grad([first.sum()], [x], create_graph=True)
    (third,) = vkml.grad([second.sum()], [x])
    assert_close(first.detach(), np.array([3.0, 12]))
    assert_close(second.detach(), np.array([6.0, 12]))
    assert_close(third, np.array([6.0, 6]))
    assert x.grad is None
    y = (x * x).sum()
    with pytest.raises(vkml.Error, match="unused"):
        vkml.grad([y], [x, unused], retain_graph=True)
    assert vkml.grad([y], [x, unused], allow_unused=True)[1] is None


def test_grad_of_an_intermediate(device: str) -> None:
    x = leaf(2.0, device)
    m = x * 3.0
    gm, gx = vkml.grad([m * m], [m, x])
    assert_close(gm, 12.0)
    assert_close(gx, 36.0)


def test_gradient_penalty_trains_through_a_gradient(device: str) -> None:
    x, w = leaf([1.0, -2.0], device), leaf([0.5, 3.0], device)
    (g,) = vkml.grad([(x * w * x).sum()], [x], create_graph=True)  # 2 w x
    (g * g).sum().backward()
    assert_close(w.grad, 8 * np.array([0.5 * 1, 3.0 * 4]))


def test_modes_nest_and_come_back(device: str) -> None:
    x = leaf(1.0, device)
    with vkml.no_grad():
        assert not vkml.is_grad_enabled()
        assert not (x * 2.0).requires_grad
        with vkml.enable_grad():
            assert (x * 2.0).requires_grad
        with pytest.raises(ZeroDivisionError), vkml.set_grad_enabled(True):
            _ = 1 / 0
        assert not vkml.is_grad_enabled()
    assert vkml.is_grad_enabled()

    @vkml.no_grad()
    def infer() -> vkml.Tensor:
        return x * 2.0

    assert not infer().requires_grad


def test_hooks_see_and_replace_gradients(device: str) -> None:
    x = leaf([1.0, 2.0], device)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.numpy().tolist()))
    x.register_hook(lambda g: g * 10.0)
    (x * 2.0).sum().backward()
    assert seen == [[2.0, 2.0]]
    assert_close(x.grad, np.full(2, 20.0))
    handle.remove()
    (x * 2.0).sum().backward()
    assert len(seen) == 1


def test_retain_grad_of_an_intermediate(device: str) -> None:
    x = leaf(2.0, device)
    m = x * 3.0
    m.retain_grad()
    (m * m).backward()
    assert_close(m.grad, 12.0)


def test_views_pass_gradients_to_what_they_show(device: str) -> None:
    x = leaf(np.arange(12.0).reshape(3, 4), device)
    (x.transpose(0, 1)[1:3, ::2] * tensor([[1, 2], [3, 4]], "float32", device)).sum().backward()
    expected = np.zeros((3, 4))
    expected.T[1:3, ::2] = [[1, 2], [3, 4]]
    assert_close(x.grad, expected)


def test_gradients_cross_devices_and_dtypes(vulkan: str) -> None:
    x = leaf([1.0, 2.0], "cpu")
    y = (x.to(vulkan) * 3.0).to("float64") * 2.0
    y.sum().backward()
    assert str(x.grad.device) == "cpu" and x.grad.dtype == x.dtype
    assert_close(x.grad, np.full(2, 6.0))


def test_gradient_of_what_was_not_used_is_nothing(device: str) -> None:
    x, y = leaf(1.0, device), leaf(1.0, device)
    (x * 2.0 + y.detach()).backward()
    assert y.grad is None


def test_long_chain(device: str) -> None:
    x = leaf(1.0, device)
    y = x
    for _ in range(5000):
        y = y + x
    y.backward()
    assert_close(x.grad, 5001.0)


def test_leaf_gradient_is_a_tensor_of_its_own(device: str) -> None:
    x, y = leaf([1.0, 1.0], device), leaf([1.0, 1.0], device)
    seed = vkml.ones((2,), device=device)
    (x + y).backward(seed)
    with vkml.no_grad():
        x.grad[0] = 9.0
    assert_close(y.grad, np.ones(2))
    assert_close(seed, np.ones(2))


def test_in_place_write_to_a_result_is_followed_or_refused(device: str) -> None:
    x = leaf([1.0, 2.0, 3.0], device)
    y = x * 2.0
    try:
        y[0] = 10.0
    except vkml.Error:
        return
    y.sum().backward()
    assert_close(x.grad, np.array([0.0, 2.0, 2.0]))


def test_backward_from_several_outputs(device: str) -> None:
    x = leaf([1.0, 2.0], device)
    a, b = vkml.grad([x * 2.0, x * x], [x, x], [vkml.ones((2,), device=device)] * 2)
    assert_close(a, np.array([4.0, 6.0]))
    assert_close(b, np.array([4.0, 6.0]))

"""The Python face of autograd: grad, backward, modes, hooks, Function, checks."""

import gc
import threading

import numpy as np
import pytest

import vkml
from vkml.autograd import Function, gradcheck, gradgradcheck


def leaf(values, device="cpu", dtype=None):
    return vkml.tensor(values, dtype=dtype, device=device, requires_grad=True)


def test_grad_is_none_before_and_adds_up(device):
    x = leaf([1.0, 2.0], device)
    assert x.grad is None and x.is_leaf and x.grad_fn is None
    for times in (1, 2):
        (x * x).backward(vkml.ones(2, device=device))
        assert x.grad.tolist() == [2 * times, 4 * times]
    x.zero_grad()
    assert x.grad is None
    x.grad = vkml.ones(2, device=device)
    assert x.grad.tolist() == [1, 1]
    x.grad = None
    assert x.grad is None


def test_setting_a_gradient_is_checked():
    x = leaf([1.0, 2.0])
    for bad, error in ((vkml.ones(3), vkml.ShapeError), (vkml.ones(2, dtype="float16"), vkml.DTypeError)):
        with pytest.raises(error, match="grad: expected"):
            x.grad = bad


def test_the_graph_is_freed(device):
    x = leaf([3.0], device)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(vkml.Error, match="retain_graph"):
        y.backward()


def test_grad_function(device):
    x, y = leaf(3.0, device), leaf(2.0, device)
    dx, dy = vkml.grad(x * x * y, [x, y])
    assert (dx.item(), dy.item()) == (12, 9) and x.grad is None
    (first,) = vkml.grad(x * x * x, x, create_graph=True)
    (second,) = vkml.grad(first, x, create_graph=True)
    (third,) = vkml.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (27, 18, 6)
    with pytest.raises(vkml.Error, match="allow_unused"):
        vkml.grad(x * x, [x, y])
    assert vkml.grad(x * x, [x, y], allow_unused=True)[1] is None
    (weighted,) = vkml.grad([x * x, x * 3], [x], [vkml.tensor(2.0, device=device), vkml.tensor(10.0, device=device)])
    assert weighted.item() == 42


def test_modes(device):
    x = leaf([1.0], device)
    assert vkml.is_grad_enabled()
    with vkml.no_grad():
        assert not (x * 2).requires_grad and not vkml.is_grad_enabled()
        with vkml.enable_grad():
            assert (x * 2).requires_grad
        assert not vkml.is_grad_enabled()
    with vkml.set_grad_enabled(False):
        assert not vkml.is_grad_enabled()
    assert vkml.is_grad_enabled()
    vkml.set_grad_enabled(False)
    assert not vkml.is_grad_enabled()
    vkml.set_grad_enabled(True)

    for decorator in (vkml.no_grad(), vkml.no_grad):

        @decorator
        def double(t):
            return t * 2

        assert not double(x).requires_grad and vkml.is_grad_enabled() and double.__name__ == "double"
    mode = vkml.no_grad()
    with mode, mode:
        assert not vkml.is_grad_enabled()
    assert vkml.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), vkml.no_grad():
        raise ZeroDivisionError
    assert vkml.is_grad_enabled()


def test_modes_belong_to_a_thread():
    seen = []
    with vkml.no_grad():
        thread = threading.Thread(target=lambda: seen.append(vkml.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_hooks(device):
    x = leaf([1.0, 2.0], device)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    doubled = x.register_hook(lambda g: g * 2)
    (x * 3).backward(vkml.ones(2, device=device))
    assert seen == [[3, 3]] and x.grad.tolist() == [6, 6]
    handle.remove()
    doubled.remove()
    x.grad = None
    (x * 3).backward(vkml.ones(2, device=device))
    assert len(seen) == 1 and x.grad.tolist() == [3, 3]
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    x.grad = None
    (y * 1).backward(vkml.ones(2, device=device))
    assert x.grad.tolist() == [20, 20] and y.grad.tolist() == [10, 10]
    with pytest.raises(vkml.Error, match="register_hook"):
        vkml.ones(1).register_hook(print)


def test_an_exception_in_a_hook_gets_out():
    x = leaf([1.0])

    def fails(g):
        raise KeyError("mine")

    x.register_hook(fails)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).backward()


def test_grad_fn():
    x = leaf([1.0])
    y = x * 2
    assert y.grad_fn.name() and repr(y.grad_fn) == f"<{y.grad_fn.name()}>"
    assert (y.clone()).grad_fn.next_functions[0].name() == y.grad_fn.name() and y.grad_fn.next_functions[0] is None


def test_in_place_on_what_requires_grad():
    x = leaf([1.0, 2.0])
    for write in (lambda: x.fill_(0), lambda: x.zero_(), lambda: x.copy_(vkml.ones(2))):
        with pytest.raises(vkml.Error, match="leaf"):
            write()
    with vkml.no_grad():
        x.fill_(4)
    x.assign_(vkml.ones(2))
    assert x.tolist() == [1, 1] and x.requires_grad
    x.grad = vkml.ones(2)
    with vkml.no_grad():  # the training loop that needs no optimizer
        x -= x.grad * 0.5
        assert x.requires_grad and x.is_leaf and x.grad is not None
        x.copy_(vkml.tensor([3, 4]))
        x.mul_(2).zero_()
    assert x.requires_grad and x.is_leaf and x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("key", ["mask", "list", "pair", "grid"])
def test_in_place_through_masks_and_index_arrays(device, key):
    x = leaf(np.arange(12.0).reshape(3, 4) - 5, device)
    y = x * 2
    keys = {"mask": y.detach() > 0, "list": [0, 2], "pair": ([0, 1], [1, 3]), "grid": vkml.tensor([[0, 2]]).to(device)}
    chosen = np.zeros((3, 4), bool)
    at = keys[key]
    chosen[at.numpy() if isinstance(at, vkml.Tensor) else at] = True
    before = y.detach().numpy()
    y[at] *= 3
    y[at] += x[at]
    (y * y).sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), np.where(chosen, 7 * x.detach().numpy(), before))
    np.testing.assert_allclose(x.grad.numpy(), np.where(chosen, 98, 8) * x.detach().numpy())


def test_in_place_on_a_view_that_others_see_is_refused(device):
    y = leaf([[1.0, 2.0], [3.0, 4.0]], device) * 2
    with pytest.raises(vkml.Error, match=r"mul_: expected a tensor that owns its history.*write x\[i\] = x\[i\] \* y"):
        y[0] *= 3
    alone = y.reshape(4)
    del y
    alone *= 3  # nobody else sees the memory
    assert alone.tolist() == [6, 12, 18, 24]


def test_copy_carries_the_gradient_of_its_source(device):
    x, target = leaf([1.0, 2.0], device), vkml.zeros(2, 2, device=device)
    target.copy_(x * 3)
    target.backward(vkml.tensor([[1.0, 2.0], [3.0, 4.0]], device=device))
    assert x.grad.tolist() == [12, 18]
    y = x * 2
    y.fill_(7)
    assert not y.requires_grad
    with pytest.raises(vkml.Error, match="copy_: expected a target that owns its memory"):
        target.detach().narrow(0, 0, 1).copy_(x)


def test_a_saved_value_that_changed_is_noticed():
    x = leaf([1.0, 2.0])
    y = vkml.exp(x)
    with vkml.no_grad():
        y.fill_(0)
    with pytest.raises(vkml.Error, match="modified in place"):
        y.backward(vkml.ones(2))


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * x * (3 * ctx.scale), None


def test_function(device):
    x = leaf([1.0, 2.0], device)
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [2, 16] and y.grad_fn.name() == "Cube"
    y.backward(vkml.ones(2, device=device))
    assert x.grad.tolist() == [6, 24]
    (first,) = vkml.grad(Cube.apply(x, 1.0), x, vkml.ones(2, device=device), create_graph=True)
    (second,) = vkml.grad(first, x, vkml.ones(2, device=device))
    assert second.tolist() == [6, 12]
    with vkml.no_grad():
        assert not Cube.apply(x, 1.0).requires_grad


def test_function_of_several():
    class Both(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b, a - b

        @staticmethod
        def backward(ctx, s, d):
            s, d = (vkml.zeros(1) if g is None else g for g in (s, d))
            return s + d, s - d

    a, b = leaf([1.0]), leaf([2.0])
    s, d = Both.apply(a, b)
    (s * 3).backward(retain_graph=True)
    assert a.grad.tolist() == [3] and b.grad.tolist() == [3]
    (s * d).backward()
    assert a.grad.tolist() == [3 + 2] and b.grad.tolist() == [3 - 4]


def test_gradcheck():
    x, y = leaf([0.5, 2.0], dtype="float64"), leaf([[1.5], [3.0]], dtype="float64")
    assert gradcheck(lambda a, b: a * b + vkml.exp(a), (x, y)) and gradgradcheck(lambda a, b: a * a * b, (x, y))

    class Wrong(Function):
        @staticmethod
        def forward(ctx, a):
            return a * a

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(vkml.Error, match="gradcheck: input 0: expected"):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)


def test_graphs_are_collected():
    gc.collect()
    before = vkml.memory_stats("cpu")["live_allocations"]
    for _ in range(10):
        x = leaf(np.ones(100))
        y = vkml.exp(x) * x
        y.register_hook(lambda g: None)
        Cube.apply(y, 1.0).backward(vkml.ones(100))
    del x, y
    gc.collect()
    assert vkml.memory_stats("cpu")["live_allocations"] == before


def test_a_long_chain_does_not_recurse():
    x = leaf([1.0])
    y = x
    for _ in range(20_000):
        y = y.reshape(1)
    y.backward()
    assert x.grad.tolist() == [1]

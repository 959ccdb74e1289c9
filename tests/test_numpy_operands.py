"""NumPy beside a tensor in an operator, and small things that PyTorch users write."""

import numpy as np
import pytest

import vkml


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(
    "other", [np.array([3.0, 5.0], np.float32), np.float32(3), np.float64(3), np.int64(3)], ids=repr
)
def test_numpy_beside_a_tensor_keeps_the_gradient(left, other):
    x = vkml.tensor([1.0, 2.0], requires_grad=True)
    y = other * x if left else x * other
    assert isinstance(y, vkml.Tensor) and y.dtype == vkml.float32
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to(np.asarray(other, np.float32), 2))


def test_comparison_with_an_array_is_a_tensor():
    x, a = vkml.tensor([1, 2, 3]), np.array([1, 5, 3])
    assert (x == a).tolist() == (a == x).tolist() == [True, False, True]
    assert (a < x).tolist() == [False, False, False] and (x < a).tolist() == [False, True, False]


def test_an_array_moves_to_no_device_by_itself(vulkan):
    with pytest.raises(vkml.DeviceError, match="on one device"):
        vkml.ones(2, device=vulkan) + np.ones(2, np.float32)


def test_text_beside_a_tensor_is_refused():
    with pytest.raises(TypeError):
        vkml.ones(2) + "two"


def test_numpy_functions_read_a_tensor():
    np.testing.assert_array_equal(np.sqrt(vkml.tensor([4.0, 9.0])), [2, 3])


def test_in():
    x = vkml.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert 3.0 in x and 5.0 not in x


@pytest.mark.parametrize("draw", [vkml.rand, vkml.randn])
def test_random_shapes_as_separate_integers(draw):
    assert draw(2, 3).shape == (2, 3) and draw(np.int64(2), 3, 4).shape == (2, 3, 4)
    assert draw(5).shape == (5,) and draw((5,), 7).shape == (5,)
    np.testing.assert_array_equal(draw(2, 3, seed=7).numpy(), draw((2, 3), 7).numpy())
    assert draw(2, 3, dtype="float64").dtype == vkml.float64
    with pytest.raises(vkml.ShapeError):
        draw(2, -3)


@pytest.mark.parametrize("exponent", [2, 3, 3.0, 0.5, -1])
def test_second_derivative_of_a_power(exponent):
    x = vkml.tensor(2.0, dtype="float64", requires_grad=True)
    (first,) = vkml.grad(x**exponent, [x], create_graph=True)
    (second,) = vkml.grad(first, [x], create_graph=True)
    (third,) = vkml.grad(second, [x])
    n = exponent
    expected = [n * 2.0 ** (n - 1), n * (n - 1) * 2.0 ** (n - 2), n * (n - 1) * (n - 2) * 2.0 ** (n - 3)]
    np.testing.assert_allclose([first.item(), second.item(), third.item()], expected, rtol=1e-12)


def test_profile_of_the_cpu():
    with vkml.profiler.profile("cpu") as p:
        (vkml.ones(64, 64) + 1).sum().item()
    assert len(p.records) >= 3 and p.total_ms > 0 and "binary" in p.table()


def test_save_says_that_the_path_comes_first(tmp_path):
    with pytest.raises(vkml.DTypeError, match="path as the first argument, got dict"):
        vkml.save({"w": vkml.ones(2)}, tmp_path / "w.safetensors")

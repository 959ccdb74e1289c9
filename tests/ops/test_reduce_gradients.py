"""Gradients of reductions: against finite differences in f64, on every device against those, and one order higher."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import FLOATS, assert_within, rounded, tensor, to_numpy

import vkml

GRADIENTS = {
    "sum": lambda x, dim: vkml.sum(x, dim),
    "mean": lambda x, dim: vkml.mean(x, dim),
    "prod": lambda x, dim: vkml.prod(x, dim),
    "amax": lambda x, dim: vkml.amax(x, dim),
    "amin": lambda x, dim: vkml.amin(x, dim, keepdim=True),
    "var": lambda x, dim: vkml.var(x, dim, keepdim=True),
    "std": lambda x, dim: vkml.std(x, dim, correction=0),
    "logsumexp": lambda x, dim: vkml.logsumexp(x, dim),
    "norm": lambda x, dim: vkml.norm(x, 2, dim),
    "norm1": lambda x, dim: vkml.norm(x, 1, dim),
    "norm3": lambda x, dim: vkml.norm(x, 3, dim),
}  # fmt: skip
AXES = [None, 0, 1, (0, 2), (2, 1)]


def weighted(f: object, x: vkml.Tensor, dim: object) -> vkml.Tensor:
    """A number whose gradient sees every result with another weight."""
    y = f(x, dim)  # type: ignore[operator]
    w = np.cos(np.arange(y.numel())).reshape(tuple(y.shape))
    return vkml.sum(y * vkml.tensor(w, dtype=x.dtype, device=str(x.device)))


def gradient(f: object, x: np.ndarray, dim: object, dtype: str, device: str) -> np.ndarray:
    t = tensor(x, dtype, device, requires_grad=True)
    weighted(f, t, dim).backward()
    assert str(t.grad.dtype) == dtype and t.grad.shape == t.shape
    return to_numpy(t.grad)


def differences(f: object, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        out[i] = (f(high) - f(low)) / (2 * step)  # type: ignore[operator]
    return out


@pytest.mark.parametrize("name", GRADIENTS)
def test_finite_differences(name: str, rng: np.random.Generator) -> None:
    f, x = GRADIENTS[name], rng.standard_normal((2, 3, 4))
    for dim in AXES:
        expected = differences(lambda v, dim=dim: weighted(f, tensor(v, "float64"), dim).item(), x)
        assert_within(gradient(f, x, dim, "float64", "cpu"), expected, 1e-6, f"{dim}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(device: str, name: str, dtype: str, rng: np.random.Generator) -> None:
    x = rounded(rng.standard_normal((2, 3, 4)) + 0.1, dtype)
    for dim in AXES:
        expected = gradient(GRADIENTS[name], x, dim, "float64", "cpu")
        # 16-bit results are rounded, and so is what the gradient starts from: the result and its gradient.
        rtol = {"float32": 1e-5, "float16": 2.0**-9, "bfloat16": 2.0**-6}[dtype]
        allowed = rtol * np.abs(expected).max() + (2.0**-24 if dtype == "float16" else 0)
        assert_within(gradient(GRADIENTS[name], x, dim, dtype, device), expected, allowed, f"{dim}")


@pytest.mark.parametrize("name", GRADIENTS)
def test_second_derivatives(name: str, rng: np.random.Generator) -> None:
    f, x, v = GRADIENTS[name], rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4))

    def slope(values: np.ndarray, dim: object, create: bool) -> tuple[vkml.Tensor, vkml.Tensor]:
        t = tensor(values, "float64", "cpu", requires_grad=True)
        (g,) = vkml.grad(weighted(f, t, dim), t, create_graph=create)
        return t, vkml.sum(g * tensor(v, "float64"))

    for dim in (None, 1, (0, 2)):
        t, s = slope(x, dim, True)
        got = np.zeros_like(x)
        if s.requires_grad:
            second = vkml.grad(s, t, allow_unused=True)[0]
            got = got if second is None else to_numpy(second)
        expected = differences(lambda w, dim=dim: slope(w, dim, False)[1].item(), x)
        assert_within(got, expected, 1e-5, f"{dim}")


def test_gradients_with_zeros(device: str) -> None:
    def grad(values: list[float]) -> list[float]:
        t = tensor(np.array(values), "float32", device, requires_grad=True)
        vkml.prod(t).backward()
        return to_numpy(t.grad).tolist()

    assert grad([2, 3, 4]) == [12, 8, 6]
    assert grad([2, 0, 4]) == [0, 8, 0]
    assert grad([0, 3, 0, 5]) == [0, 0, 0, 0]
    t = tensor(np.array([2.0, 0.0, 4.0]), "float64", "cpu", requires_grad=True)
    (g,) = vkml.grad(vkml.prod(t), t, create_graph=True)
    (h,) = vkml.grad(g[0], t)  # d/dx of x1 x2
    assert to_numpy(h).tolist() == [0, 4, 0]


def test_ties_share_the_gradient(device: str) -> None:
    for dtype in FLOATS:
        t = tensor(np.array([3.0, 3.0, 1.0]), dtype, device, requires_grad=True)
        vkml.amax(t).backward()
        assert to_numpy(t.grad).tolist() == [0.5, 0.5, 0]
    t = tensor(np.array([[3.0, 3.0, 1.0], [0.0, 2.0, 2.0]]), "float32", device, requires_grad=True)
    values, _ = vkml.max(t, 1)
    vkml.sum(values * tensor(np.array([2.0, 5.0]), "float32", device)).backward()
    assert to_numpy(t.grad).tolist() == [[2, 0, 0], [0, 5, 0]]
    t = tensor(np.array([[1.0, 0.0], [1.0, -1.0]]), "float32", device, requires_grad=True)
    vkml.sum(t.min(0, keepdim=True)[0]).backward()
    assert to_numpy(t.grad).tolist() == [[1, 0], [0, 1]]


def test_logsumexp_and_std_at_their_edges(device: str) -> None:
    t = tensor(np.full(3, -math.inf), "float32", device, requires_grad=True)
    vkml.logsumexp(t).backward()
    assert to_numpy(t.grad).tolist() == [0, 0, 0]
    t = tensor(np.array([math.inf, 1.0, 2.0]), "float32", device, requires_grad=True)
    vkml.logsumexp(t).backward()
    assert math.isnan(to_numpy(t.grad)[0])
    assert to_numpy(t.grad)[1:].tolist() == [0, 0]
    t = tensor(np.ones(3), "float32", device, requires_grad=True)
    vkml.std(t).backward()
    assert to_numpy(t.grad).tolist() == [0, 0, 0]
    t = tensor(np.zeros(3), "float32", device, requires_grad=True)
    vkml.norm(t).backward()
    assert to_numpy(t.grad).tolist() == [0, 0, 0]

"""The multi-tensor optimizer: known answers, odd sizes, 16-bit and float64 parameters, absent gradients."""

import numpy as np
import pytest

import vkml
from vkml import _core


def make(values, device, dtype="float32"):
    return vkml.tensor(np.asarray(values, np.float64), dtype=dtype, device=device)


def read(t):
    return t.numpy()


@pytest.mark.parametrize(
    ("rule", "options", "steps", "answer"),
    [
        ("sgd", {"lr": 0.1, "beta1": 0.9, "nesterov": True, "weight_decay": 0.1}, 2, 0.191101),
        ("adam", {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}, 2, 0.8004122),
        ("adamw", {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.5}, 1, 0.85),
    ],
)
def test_known_answers(device, rule, options, steps, answer):
    p = make([1.0], device)
    optimizer = _core._MultiTensorOptimizer([p], rule, **options)
    for _ in range(steps):
        optimizer.step([make(2 * read(p), device)])
    assert read(p)[0] == pytest.approx(answer, rel=1e-6)


def adam64(p, g, m, v, t, lr, b1, b2, eps, wd):
    g = g + wd * p
    m[:] = b1 * m + (1 - b1) * g
    v[:] = b2 * v + (1 - b2) * g * g
    return p - lr / (1 - b1**t) * m / (np.sqrt(v) / np.sqrt(1 - b2**t) + eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_tensors_follow_adam(device, dtype):
    rng = np.random.default_rng(3)
    shapes = [(1,), (1023,), (1024,), (1025,), (3, 5), (0,), (4099,)]
    values = [rng.standard_normal(s) for s in shapes]
    tensors = [make(v, device, dtype) for v in values]
    values = [read(t).astype(np.float64) for t in tensors]
    means, squares = [np.zeros(s) for s in shapes], [np.zeros(s) for s in shapes]
    optimizer = _core._MultiTensorOptimizer(
        tensors, "adam", lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1
    )
    for t in range(1, 6):
        gradients = [make(rng.standard_normal(s), device, dtype) for s in shapes]
        optimizer.step(gradients)
        for i, g in enumerate(gradients):
            values[i] = adam64(
                values[i], read(g).astype(np.float64), means[i], squares[i], t, 0.01, 0.9, 0.999, 1e-8, 0.1
            )
    # Five steps of at most ~0.01 each: rounding stays within some ulps of the parameter and of the steps.
    bound = 1e-6 if dtype == "float32" else 1e-13
    for got, want in zip(tensors, values, strict=True):
        np.testing.assert_allclose(read(got), want, rtol=bound, atol=bound)


def test_absent_gradient_leaves_the_parameter(device):
    a, b = make([1.0, 2.0], device), make([3.0], device)
    optimizer = _core._MultiTensorOptimizer([a, b], "sgd", lr=0.5)
    optimizer.step([None, make([1.0], device)])
    assert read(a).tolist() == [1.0, 2.0] and read(b).tolist() == [2.5]


def test_half_parameters_round_once(device):
    p = make([1.0, -2.0], device, "float16")
    g = make([0.25, 3.0], device, "float16")
    _core._MultiTensorOptimizer([p], "sgd", lr=0.1).step([g])
    want = np.array([1.0 - np.float32(0.1) * 0.25, -2.0 - np.float32(0.1) * 3.0], np.float32).astype(np.float16)
    assert read(p).tolist() == want.tolist()


def test_wrong_gradients_are_refused():
    p = make([1.0, 2.0], "cpu")
    optimizer = _core._MultiTensorOptimizer([p], "sgd", lr=0.1)
    with pytest.raises(_core.ShapeError, match="expected a gradient of shape"):
        optimizer.step([make([1.0], "cpu")])
    with pytest.raises(_core.DTypeError, match="float32, got float64"):
        optimizer.step([make([1.0, 2.0], "cpu", "float64")])
    with pytest.raises(_core.ShapeError, match="1 gradients, got 2"):
        optimizer.step([None, None])
    assert read(p).tolist() == [1.0, 2.0]


def adagrad64(p, g, states, t, lr, decay, eps, wd):
    g = g + wd * p
    states[0] += g * g
    return p - lr / (1 + (t - 1) * decay) * g / (np.sqrt(states[0]) + eps)


def nadam64(p, g, states, t, lr, psi, eps, wd, b1=0.8, b2=0.95):
    g = g + wd * p
    states[0][:] = b1 * states[0] + (1 - b1) * g
    states[1][:] = b2 * states[1] + (1 - b2) * g * g
    momenta = [b1 * (1 - 0.5 * 0.96 ** (i * psi)) for i in range(1, t + 2)]
    now, product = momenta[t - 1], np.prod(momenta[:t])
    root = np.sqrt(states[1] / (1 - b2**t)) + eps
    return p - lr * ((1 - now) / (1 - product) * g + momenta[t] / (1 - np.prod(momenta)) * states[0]) / root


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("rule", ["adagrad", "nadam"])
def test_rules_against_float64(device, dtype, rule):
    rng = np.random.default_rng(4)
    shapes = [(1,), (1025,), (3, 5)]
    tensors = [make(rng.standard_normal(s), device, dtype) for s in shapes]
    values = [read(t).astype(np.float64) for t in tensors]
    start = 0.25 if rule == "adagrad" else 0.0
    states = [[np.full(s, start), np.zeros(s)] for s in shapes]
    options = {"beta1": 0.3, "dampening": start} if rule == "adagrad" else {"beta1": 0.8, "beta2": 0.95}
    options |= {"dampening": 0.5} if rule == "nadam" else {}
    optimizer = _core._MultiTensorOptimizer(tensors, rule, lr=0.01, eps=1e-8, weight_decay=0.1, **options)
    follow = adagrad64 if rule == "adagrad" else nadam64
    for t in range(1, 6):
        gradients = [make(rng.standard_normal(s), device, dtype) for s in shapes]
        optimizer.step(gradients)
        for i, g in enumerate(gradients):
            values[i] = follow(
                values[i], read(g).astype(np.float64), states[i], t, 0.01, 0.3 if rule == "adagrad" else 0.5, 1e-8, 0.1
            )
    # Five steps of at most ~0.05 each: some ulps of the parameter, and each step rounds it once.
    bound = {"float32": 2e-6, "float64": 1e-13, "bfloat16": 5 * 2.0**-8}[dtype]
    for t, v in zip(tensors, values, strict=True):
        np.testing.assert_allclose(read(t), v, rtol=bound, atol=bound)

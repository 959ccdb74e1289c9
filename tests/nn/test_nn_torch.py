"""Every class of vkml.nn against PyTorch's: values, gradients, state dicts, 20 steps from the same weights."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from nn_cases import CASES, Case

import vkml
from vkml import nn


def test_every_class_has_a_case() -> None:
    listed = {n for n in nn.__all__ if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)}
    assert listed - {"Module"} == {case.name for case in CASES}
    others = {n for n in nn.__all__ if inspect.isclass(getattr(nn, n))} - listed
    assert others == {"KdaCache", "Parameter"}, "a new class that is no Module: say here why it needs no case"


class Side:
    """One library's module, inputs and loss."""

    def __init__(self, case: Case, library: Any, namespace: Any, tensor: Any) -> None:
        self.case, self.library, self.tensor = case, library, tensor
        self.module = case.build(namespace)

    def feed(self, floats: list[np.ndarray], fixed: list[np.ndarray]) -> None:
        self.inputs = [self.tensor(x) for x in floats]
        self.fixed = [self.tensor(x) for x in fixed]
        for x in self.inputs:
            x.requires_grad_()

    def outputs(self) -> list[Any]:
        y = self.case.call(self.module, *self.inputs, *self.fixed)
        return list(y) if isinstance(y, (list, tuple)) else [y]

    def loss(self, targets: list[np.ndarray]) -> Any:
        total = 0
        for y, target in zip(self.outputs(), targets, strict=True):
            total = total + (y if target.ndim == 0 else ((y - self.tensor(target)) ** 2).mean())
        return total

    def trained(self) -> dict[str, Any]:
        named = {f"input {i}": x for i, x in enumerate(self.inputs)}
        return {**named, **dict(self.module.named_parameters())}

    def optimizer(self) -> Any:
        return self.library.optim.SGD(list(self.trained().values()), lr=self.case.rate, momentum=0.9)


def numbers(x: Any) -> np.ndarray:
    return np.asarray(x.detach().numpy())


def sides(case: Case, device: str, rng: np.random.Generator) -> tuple[Side, Side]:
    torch = pytest.importorskip("torch")
    torch.manual_seed(int(rng.integers(1 << 31)))
    theirs = Side(case, torch, torch.nn, lambda x: torch.tensor(x))
    ours = Side(case, vkml, nn, lambda x: vkml.tensor(x, device=device))
    ours.module.to(device)
    ours.module.load_state_dict(theirs.module.state_dict())
    floats, fixed = case.arrays(rng)
    for side in (theirs, ours):
        side.feed(floats, fixed)
    return ours, theirs


def assert_near(got: np.ndarray, expected: np.ndarray, bound: float, what: str) -> None:
    """Within `bound` of the largest magnitude."""
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    allowed = bound * max(1e-3, float(np.abs(expected).max(initial=0)))
    worst = float(np.abs(got.astype(np.float64) - expected).max(initial=0))
    assert worst <= allowed, f"{what}: off by {worst:.3g}, allowed {allowed:.3g}"


def targets_for(side: Side, rng: np.random.Generator) -> list[np.ndarray]:
    """Something to be near to, per output; a loss is its own."""
    return [rng.standard_normal(tuple(y.shape)).astype(np.float32) if y.ndim else np.zeros(()) for y in side.outputs()]


by_case = pytest.mark.parametrize("case", CASES, ids=str)


@pytest.mark.torch
@by_case
def test_values_and_gradients(case, device, rng):
    ours, theirs = sides(case, device, rng)
    made = list(zip(ours.outputs(), theirs.outputs(), strict=True))
    for i, (a, b) in enumerate(made):
        assert_near(numbers(a), numbers(b), 1e-5, f"output {i}")
        weight = rng.standard_normal(tuple(b.shape)).astype(np.float32)
        a.backward(ours.tensor(weight), retain_graph=i + 1 < len(made))
        b.backward(theirs.tensor(weight), retain_graph=i + 1 < len(made))
    for (name, a), (other, b) in zip(ours.trained().items(), theirs.trained().items(), strict=True):
        assert name == other and (a.grad is None) == (b.grad is None), (name, other)
        if b.grad is not None:
            assert a.grad.device == device and a.grad.dtype == a.dtype
            assert_near(numbers(a.grad), numbers(b.grad), 2e-5, f"gradient of {name}")


@pytest.mark.torch
@by_case
def test_state_dict_both_ways(case, device, rng):
    torch = pytest.importorskip("torch")
    ours, theirs = sides(case, device, rng)
    mine, yours = ours.module.state_dict(), theirs.module.state_dict()
    assert list(mine) == list(yours)
    for name in mine:
        assert tuple(mine[name].shape) == tuple(yours[name].shape)
        np.testing.assert_array_equal(numbers(mine[name]), numbers(yours[name]))
    with vkml.no_grad():
        for t in mine.values():  # new values, so that what comes back was read
            t.copy_(t + 1 if not t.is_floating_point() else t * 0.75 + 0.125)
    back = {name: torch.tensor(np.asarray(t.numpy())) for name, t in ours.module.state_dict().items()}
    theirs.module.load_state_dict(back)
    for name, t in theirs.module.state_dict().items():
        np.testing.assert_array_equal(numbers(mine[name]), numbers(t))
    for a, b in zip(ours.outputs(), theirs.outputs(), strict=True):
        assert_near(numbers(a), numbers(b), 1e-5, "output after the way back")


@pytest.mark.torch
@by_case
def test_twenty_steps(case, device, rng):
    ours, theirs = sides(case, device, rng)
    targets = targets_for(theirs, rng)
    if not ours.trained():
        pytest.fail("nothing to train: give the case an input")
    # targets_for ran a forward: running statistics must start equal.
    ours.module.load_state_dict(theirs.module.state_dict())
    optimizers = ours.optimizer(), theirs.optimizer()
    losses = []
    for _ in range(20):
        row = []
        for side, optimizer in zip((ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            loss = side.loss(targets)
            loss.backward()
            optimizer.step()
            row.append(loss.item())
        losses.append(row)
        assert abs(row[0] - row[1]) <= 1e-5 * abs(row[1]), f"step {len(losses)}: loss {row[0]}, expected {row[1]}"
    assert losses[0][1] != losses[-1][1], "the loss did not move: this case tests no training"
    for (name, a), b in zip(ours.trained().items(), theirs.trained().values(), strict=True):
        assert_near(numbers(a), numbers(b), 1e-4, name)
    for name, b in theirs.module.state_dict().items():
        assert_near(numbers(ours.module.state_dict()[name]), numbers(b), 1e-4, name)

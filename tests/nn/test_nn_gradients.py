"""Every class of vkml.nn without PyTorch: gradients by differences in float64, and the devices against each other."""

from __future__ import annotations

import numpy as np
import pytest
from nn_cases import CASES

import vkml
from vkml import nn

by_case = pytest.mark.parametrize("case", CASES, ids=str)


class Run:
    """A case on a device, in a dtype: the loss that weighs every output, and all that is trained."""

    def __init__(self, case, device, dtype, rng, state=None):
        self.case = case
        self.module = case.build(nn).to(device).to(dtype)
        if state is not None:
            self.module.load_state_dict(state)
        floats, fixed = case.arrays(rng)
        self.inputs = [vkml.tensor(x, dtype=dtype, device=device, requires_grad=True) for x in floats]
        self.fixed = [vkml.tensor(x, device=device) for x in fixed]
        self.fixed = [x.to(dtype) if x.is_floating_point() else x for x in self.fixed]
        y = self.outputs()
        self.weights = [vkml.tensor(rng.standard_normal(t.shape), dtype=dtype, device=device) for t in y]

    def outputs(self):
        y = self.case.call(self.module, *self.inputs, *self.fixed)
        return list(y) if isinstance(y, (list, tuple)) else [y]

    def loss(self):
        return sum((y * w).sum() for y, w in zip(self.outputs(), self.weights, strict=True))

    def trained(self):
        named = {f"input {i}": x for i, x in enumerate(self.inputs)}
        return {**named, **dict(self.module.named_parameters())}


@by_case
def test_gradients_by_differences(case, rng):
    run = Run(case, "cpu", vkml.float64, rng)
    run.loss().backward()
    step = 2.0**-20
    for name, t in run.trained().items():
        if t.grad is None:
            continue
        held, direction = t.detach().clone(), vkml.tensor(rng.standard_normal(t.shape), dtype=vkml.float64)
        if case.name == "Embedding":
            direction[run.module.padding_idx] = 0.0  # gets no gradient, though values depend on it
        ends = []
        with vkml.no_grad():
            for sign in (1, -1):
                t.copy_(held + direction * (sign * step))
                ends.append(run.loss().item())
            t.copy_(held)
        slope, expected = (ends[0] - ends[1]) / (2 * step), (t.grad * direction).sum().item()
        size = (t.grad * direction).abs().sum().item()
        assert abs(slope - expected) <= 2e-6 * size + 1e-8, f"{name}: slope {slope}, gradient says {expected}"


@by_case
def test_some_gradient_reaches_everything(case, device, rng):
    run = Run(case, device, vkml.float32, rng)
    run.loss().backward()
    without = [n for n, t in run.trained().items() if t.grad is None]
    assert not without, f"no gradient for {without}"
    assert all(np.isfinite(t.grad.numpy()).all() for t in run.trained().values())


@by_case
def test_vulkan_equals_the_cpu(case, vulkan, request):
    def seeded():
        return np.random.default_rng(len(request.node.name))

    here = Run(case, "cpu", vkml.float32, seeded())
    there = Run(case, vulkan, vkml.float32, seeded(), here.module.state_dict())
    here.module.load_state_dict(there.module.state_dict())  # running statistics have moved alike
    for a, b in zip(there.outputs(), here.outputs(), strict=True):
        close(a, b, "output")
    for run in (here, there):
        run.loss().backward()
    for (name, a), b in zip(there.trained().items(), here.trained().values(), strict=True):
        close(a.grad, b.grad, f"gradient of {name}")
    for (name, a), b in zip(there.module.state_dict().items(), here.module.state_dict().values(), strict=True):
        close(a, b, name)


def close(a, b, what):
    got, expected = a.detach().numpy().astype(np.float64), b.detach().numpy().astype(np.float64)
    assert got.shape == expected.shape, what
    allowed = 2e-5 * max(1e-2, np.abs(expected).max(initial=0))
    assert np.abs(got - expected).max(initial=0) <= allowed, what

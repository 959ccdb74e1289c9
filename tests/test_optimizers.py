"""Optimizers and schedules: known figures, groups, states, and PyTorch."""

import numpy as np
import pytest

import vkml
from vkml import optim


def train(make, steps, device="cpu", start=1.0):
    """p after some steps on the loss p^2."""
    p = vkml.tensor([start], device=device, requires_grad=True)
    optimizer = make([p])
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p).backward()
        optimizer.step()
    return p.item()


FIGURES = {
    "SGD": (lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1), 2, 0.191101),
    "Adam": (lambda p: optim.Adam(p, 0.1), 2, 0.8004122),
    "AdamW": (lambda p: optim.AdamW(p, 0.1, weight_decay=0.5), 1, 0.85),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(device, name):
    make, steps, answer = FIGURES[name]
    assert train(make, steps, device) == pytest.approx(answer, rel=2e-6)


def test_a_zero_gradient_leaves_zero():
    p = vkml.zeros(3, requires_grad=True)
    p.grad = vkml.zeros(3)
    for make in (optim.Adam, optim.AdamW, optim.SGD, optim.RMSprop):
        make([p]).step()
        assert p.tolist() == [0, 0, 0]


def test_parameters_without_a_gradient_stay():
    p, q = vkml.ones(2, requires_grad=True), vkml.ones(2, requires_grad=True)
    p.grad = vkml.ones(2)
    optim.SGD([p, q], 0.5).step()
    assert p.tolist() == [0.5, 0.5] and q.tolist() == [1, 1]


def test_refusals():
    p = vkml.ones(1, requires_grad=True)
    bad = [
        lambda: optim.SGD([]),
        lambda: optim.SGD([vkml.ones(1)]),
        lambda: optim.SGD([p], lr=-1),
        lambda: optim.SGD([p], lr=float("nan")),
        lambda: optim.SGD([p], nesterov=True),
        lambda: optim.SGD([p, p]),
        lambda: optim.SGD(p),
        lambda: optim.Adam([p], betas=(1.0, 0.9)),
        lambda: optim.Adam([p], eps=-1),
        lambda: optim.RMSprop([p], alpha=2),
        lambda: optim.SGD([{"params": []}]),
        lambda: optim.lr_scheduler.StepLR(optim.SGD([p]), 0),
    ]
    for make in bad:
        with pytest.raises(ValueError, match="expected"):
            make()


def test_groups_and_lr():
    p, q = vkml.ones(1, requires_grad=True), vkml.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    p.grad, q.grad = vkml.ones(1), vkml.ones(1)
    optimizer.step()
    assert p.item() == pytest.approx(0.9) and q.item() == 0.5 and optimizer.lr == 0.1
    optimizer.lr = 0.25
    optimizer.step()
    assert p.item() == pytest.approx(0.65) and q.item() == 0.25
    assert [g["lr"] for g in optimizer.param_groups] == [0.25, 0.25] and "lr=0.25" in repr(optimizer)


def test_closure_and_zero_grad():
    p = vkml.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], 0.25)

    def closure():
        optimizer.zero_grad()
        loss = p * p
        loss.backward()
        return loss

    with vkml.no_grad():
        assert optimizer.step(closure).item() == 1
    assert p.item() == 0.5
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0]
    optimizer.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize(
    "make", [lambda p: optim.Adam(p, 0.1), lambda p: optim.SGD(p, 0.05, momentum=0.9), lambda p: optim.RMSprop(p, 0.01)]
)
def test_state_dict_continues(make, device):
    def steps(p, optimizer, n):
        for _ in range(n):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

    p = vkml.tensor([1.0, -2.0], device=device, requires_grad=True)
    optimizer = make([p])
    steps(p, optimizer, 3)
    q = vkml.tensor(p.numpy(), device=device, requires_grad=True)
    other = make([q])
    other.load_state_dict(optimizer.state_dict())
    steps(p, optimizer, 2)
    steps(q, other, 2)
    assert p.tolist() == q.tolist()
    with pytest.raises(ValueError, match="load_state_dict: expected groups"):
        make([vkml.ones(1, requires_grad=True), vkml.ones(1, requires_grad=True)]).load_state_dict(
            optimizer.state_dict()
        )


def test_the_optimizer_follows_a_moved_module(vulkan):
    layer = vkml.nn.Linear(2, 1)
    optimizer = optim.Adam(layer.parameters(), 0.1)
    for device in ("cpu", vulkan, "cpu"):
        layer.to(device)
        before = layer.weight.tolist()
        optimizer.zero_grad()
        layer(vkml.ones(1, 2, device=device)).sum().backward()
        optimizer.step()
        assert layer.weight.device == device and layer.weight.tolist() != before
    assert optimizer.state_dict()["state"][0]["exp_avg"].abs().sum().item() > 0


def test_few_dispatches(device):
    parameters = [vkml.ones(i + 1, device=device, requires_grad=True) for i in range(50)]
    for p in parameters:
        p.grad = vkml.ones(p.shape, device=device)
    optimizer = optim.AdamW(parameters)
    optimizer.step()
    before = vkml.dispatch_count(device)
    optimizer.step()
    assert vkml.dispatch_count(device) - before <= 2


def test_clip_grad_norm(device):
    p = vkml.zeros(2, device=device, requires_grad=True)
    p.grad = vkml.tensor([3.0, 4.0], device=device)
    assert optim.clip_grad_norm_([p], 1.0).item() == 5
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-5)
    assert optim.clip_grad_norm_(p, 10.0).item() == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-5)
    assert optim.clip_grad_norm_([p], 10.0, norm_type=float("inf")).item() == pytest.approx(0.8, rel=1e-5)
    assert optim.clip_grad_norm_([p], 10.0, norm_type=1).item() == pytest.approx(1.4, rel=1e-5)
    assert optim.clip_grad_norm_([vkml.zeros(1, requires_grad=True)], 1.0).item() == 0
    p.grad = vkml.tensor([float("inf"), 1.0], device=device)
    with pytest.raises(vkml.Error, match="expected a finite norm"):
        optim.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [float("inf"), 1.0]
    assert optim.clip_grad_norm_([p], 1.0).item() == float("inf")


def test_clip_grad_value(device):
    p = vkml.zeros(3, device=device, requires_grad=True)
    p.grad = vkml.tensor([3.0, -4.0, 0.5], device=device)
    optim.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [1, -1, 0.5]


SCHEDULES = {
    "StepLR": (lambda o: optim.lr_scheduler.StepLR(o, 2), [1, 1, 0.1, 0.1, 0.01]),
    "CosineAnnealingLR": (lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 4), [1, 0.853553, 0.5, 0.146447, 0]),
    "LinearWarmup": (lambda o: optim.lr_scheduler.LinearWarmup(o, 4), [0.25, 0.5, 0.75, 1, 1]),
    "LambdaLR": (lambda o: optim.lr_scheduler.LambdaLR(o, lambda t: 1 / (t + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    make, rates = SCHEDULES[name]
    optimizer = optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0)
    schedule = make(optimizer)
    found = []
    for _ in rates:
        found.append(schedule.get_last_lr()[0])
        assert optimizer.lr == found[-1]
        schedule.step()
    assert found == pytest.approx(rates, abs=1e-6)
    again = make(optim.SGD([vkml.ones(1, requires_grad=True)], lr=1.0))
    again.load_state_dict(schedule.state_dict())
    assert again.get_last_lr() == schedule.get_last_lr()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.01, "betas": (0.8, 0.95)}),
        ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.01}),
    ],
)
def test_against_torch(device, name, options, rng):
    torch = pytest.importorskip("torch")
    start = rng.standard_normal((3, 4)).astype(np.float32)
    ours, theirs = vkml.tensor(start, device=device, requires_grad=True), torch.tensor(start, requires_grad=True)
    a, b = getattr(optim, name)([ours], **options), getattr(torch.optim, name)([theirs], **options)
    for _ in range(20):
        g = rng.standard_normal((3, 4)).astype(np.float32)
        ours.grad, theirs.grad = vkml.tensor(g, device=device), torch.tensor(g)
        a.step()
        b.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=2e-5, atol=2e-6)

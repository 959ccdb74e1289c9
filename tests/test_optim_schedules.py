"""Learning-rate schedules against PyTorch's, their states, and schedules after one another."""

import math
import warnings

import numpy as np
import pytest
from vkml.optim import lr_scheduler as ours

import vkml

STEPS = 24
CASES = {
    "StepLR": {"step_size": 5, "gamma": 0.3},
    "MultiStepLR": {"milestones": [3, 7, 7, 15], "gamma": 0.5},
    "ExponentialLR": {"gamma": 0.9},
    "ConstantLR": {"factor": 0.25, "total_iters": 4},
    "LinearLR": {"start_factor": 0.1, "end_factor": 0.8, "total_iters": 9},
    "LinearLR-default": {},
    "CosineAnnealingLR": {"T_max": 10, "eta_min": 0.01},
    "LambdaLR": {"lr_lambda": lambda t: 1 / (1 + t)},
    "OneCycleLR": {"max_lr": 0.7, "total_steps": 24},
    "OneCycleLR-linear": {"max_lr": 0.7, "epochs": 6, "steps_per_epoch": 4, "anneal_strategy": "linear"},
    "OneCycleLR-three": {"max_lr": 0.7, "total_steps": 24, "three_phase": True, "div_factor": 10.0},
    "OneCycleLR-plain": {"max_lr": [0.7, 0.3], "total_steps": 25, "cycle_momentum": False, "pct_start": 0.5},
}


def optimizer(library, **options):
    make = vkml if library is vkml else library
    leaves = [make.ones(1, requires_grad=True) for _ in range(2)]
    for p in leaves:
        p.grad = make.zeros(1)
    groups = [{"params": [leaves[0]]}, {"params": [leaves[1]], "lr": 0.2}]
    return library.optim.SGD(groups, lr=0.5, momentum=0.9, **options)


def rates(opt, schedule, steps=STEPS):
    found = []
    for _ in range(steps):
        found.append([(g["lr"], g["momentum"]) for g in opt.param_groups])
        assert list(schedule.get_last_lr()) == [g["lr"] for g in opt.param_groups]
        opt.step()
        schedule.step()
    return found


def close(found, wanted):
    return all(
        math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12)
        for a, b in zip(found, wanted, strict=True)
        for c, d in zip(a, b, strict=True)
        for x, y in zip(c, d, strict=True)
    )


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
def test_against_torch(case):
    torch = pytest.importorskip("torch")
    name, options = case.split("-")[0], CASES[case]
    a, b = optimizer(vkml), optimizer(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.optim.lr_scheduler, name)(b, **options)
    assert close(rates(a, getattr(ours, name)(a, **options)), rates(b, theirs))


@pytest.mark.torch
@pytest.mark.parametrize("milestones", [[4], [3, 9]])
def test_sequences_against_torch(milestones):
    torch = pytest.importorskip("torch")
    found = []
    for library, module in ((vkml, ours), (torch, torch.optim.lr_scheduler)):
        opt = optimizer(library)
        parts = [
            module.LinearLR(opt, start_factor=0.1, total_iters=4),
            module.CosineAnnealingLR(opt, T_max=9),
            module.ExponentialLR(opt, gamma=0.5),
        ][: len(milestones) + 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(rates(opt, module.SequentialLR(opt, parts, milestones), 14))
    assert close(*found)


PLATEAUS = [
    {"patience": 1},
    {"patience": 0, "factor": 0.5, "cooldown": 2, "min_lr": [0.1, 0.15]},
    {"mode": "max", "patience": 1, "threshold": 0.05, "threshold_mode": "abs"},
    {"mode": "max", "patience": 2, "threshold": 0.1},
]


@pytest.mark.torch
@pytest.mark.parametrize("options", PLATEAUS)
def test_plateaus_against_torch(options):
    torch = pytest.importorskip("torch")
    measures = [1.0, 0.9, 0.9, 0.95, 0.9, 0.89, 0.8, 0.8, 0.8, float("nan"), 0.8, 0.1, 0.2, 0.3, 0.3, 0.3]
    found = []
    for library, module in ((vkml, ours), (torch, torch.optim.lr_scheduler)):
        opt = optimizer(library)
        schedule = module.ReduceLROnPlateau(opt, **options)
        seen = []
        for measure in measures:
            schedule.step(measure)
            seen.append([g["lr"] for g in opt.param_groups])
        found.append(seen)
    np.testing.assert_allclose(*found, rtol=1e-9)
    assert len({tuple(x) for x in found[0]}) > 1


@pytest.mark.parametrize("case", CASES)
def test_states_continue(case, tmp_path):
    name, options = case.split("-")[0], CASES[case]
    a = optimizer(vkml)
    schedule = getattr(ours, name)(a, **options)
    rates(a, schedule, 6)
    vkml.save(tmp_path / "state.safetensors", {"schedule": schedule.state_dict(), "optimizer": a.state_dict()})
    saved = vkml.load(tmp_path / "state.safetensors")
    b = optimizer(vkml)
    again = getattr(ours, name)(b, **options)
    b.load_state_dict(saved["optimizer"])
    again.load_state_dict(saved["schedule"])
    assert rates(b, again, 8) == rates(a, schedule, 8)


def test_states_of_a_sequence_and_a_plateau_continue():
    def make():
        opt = optimizer(vkml)
        return opt, ours.SequentialLR(opt, [ours.LinearWarmup(opt, 3), ours.ExponentialLR(opt, 0.5)], [3])

    (a, first), (b, second) = make(), make()
    rates(a, first, 5)
    second.load_state_dict(first.state_dict())
    assert rates(b, second, 4) == rates(a, first, 4)
    plateau = ours.ReduceLROnPlateau(a, patience=1)
    plateau.step(1.0)
    plateau.step(1.0)
    other = ours.ReduceLROnPlateau(b, patience=1)
    other.load_state_dict(plateau.state_dict())
    before = b.lr
    other.step(1.0)
    assert b.lr == pytest.approx(0.1 * before)


def test_refusals():
    opt = optimizer(vkml)
    plain = vkml.optim.RMSprop([vkml.ones(1, requires_grad=True)])
    lion = vkml.optim.Lion([vkml.ones(1, requires_grad=True)])
    bad = [
        lambda: ours.LinearLR(opt, start_factor=0),
        lambda: ours.ConstantLR(opt, factor=2),
        lambda: ours.CosineAnnealingLR(opt, 0),
        lambda: ours.OneCycleLR(opt, 1.0),
        lambda: ours.OneCycleLR(opt, [1.0], total_steps=5),
        lambda: ours.OneCycleLR(opt, 1.0, total_steps=5, anneal_strategy="steep"),
        lambda: ours.SequentialLR(opt, [ours.ExponentialLR(opt, 0.5)], [1]),
        lambda: ours.SequentialLR(opt, [ours.ExponentialLR(opt, 0.5), ours.ExponentialLR(plain, 0.5)], [1]),
        lambda: ours.ReduceLROnPlateau(opt, mode="up"),
        lambda: ours.ReduceLROnPlateau(opt, factor=1.0),
        lambda: ours.LambdaLR(opt, [lambda t: 1.0]),
    ]
    for make in bad:
        with pytest.raises(ValueError, match="expected"):
            make()
    schedule = ours.OneCycleLR(lion, 1.0, total_steps=3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="at most 3 steps"):
        schedule.step()

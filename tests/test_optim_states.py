"""States that are refused as a whole, copies and pickles of optimizers, and parameters with gaps."""

import copy
import pickle

import numpy as np
import pytest

import vkml
from vkml import optim


def stepped(make=lambda p: optim.Adam(p, 0.1), start=((1.0, -2.0, 3.0), (0.5,)), steps=2):
    parameters = [vkml.tensor(list(values), requires_grad=True) for values in start]
    optimizer = make(parameters)
    walk(parameters, optimizer, steps)
    return parameters, optimizer


def walk(parameters, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        sum((p * p).sum() for p in parameters).backward()
        optimizer.step()


def plain(state):
    def told(value):
        return value.tolist() if isinstance(value, vkml.Tensor) else value

    states = {n: {k: told(v) for k, v in entry.items()} for n, entry in state["state"].items()}
    return states, state["param_groups"]


def drop(entry, name):
    entry["state"][1].pop(name)


DAMAGE = {
    "shape": (lambda s: s["state"][1].update(exp_avg_sq=vkml.ones(2)), r"state 1: exp_avg_sq: .*\(1,\).*\(2,\)"),
    "broadcast": (lambda s: s["state"][0].update(exp_avg=vkml.ones(1)), r"state 0: exp_avg: .*\(3,\).*\(1,\)"),
    "scalar": (lambda s: s["state"][0].update(exp_avg=2.0), "state 0: exp_avg: "),
    "dtype": (lambda s: s["state"][0].update(exp_avg=np.array([1, 2, 3])), "exp_avg: expected a floating"),
    "no tensor": (lambda s: s["state"][0].update(exp_avg="a"), "exp_avg: expected a tensor of shape"),
    "missing": (lambda s: drop(s, "exp_avg"), "state 1: expected 'exp_avg'"),
    "no step": (lambda s: drop(s, "step"), "state 1: expected 'step'"),
    "a word": (lambda s: s["state"][1].update(step="a"), "state 1: step: "),
    "steps": (lambda s: s["state"][1].update(step=-1.0), "state 1: step: "),
    "corrections": (lambda s: s["state"][1].update(bias_correction=vkml.ones(1)), "bias_correction"),
    "other rule": (lambda s: s["state"][1].update(momentum_buffer=vkml.ones(1)), "'momentum_buffer'"),
    "number": (lambda s: s["state"].update({7: {}}), "one of 7"),
    "twice": (lambda s: s["param_groups"][0].update(params=[0, 0]), "once"),
    "size": (lambda s: s["param_groups"][0].update(params=[0]), "expected groups"),
    "no rate": (lambda s: s["param_groups"][0].pop("lr"), "'lr'"),
    "rate": (lambda s: s["param_groups"][0].update(lr="a"), "lr: expected"),
    "betas": (lambda s: s["param_groups"][0].update(betas=(0.9,)), "betas: expected"),
    "groups": (lambda s: s.pop("param_groups"), "'param_groups'"),
    "state": (lambda s: s.update(state=[1]), "state: expected a mapping"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_refused_state_changes_nothing(name):
    damage, text = DAMAGE[name]
    parameters, optimizer = stepped()
    _, other = stepped(lambda p: optim.Adam(p, 0.7), steps=3)
    state = other.state_dict()
    damage(state)
    before = plain(optimizer.state_dict())
    with pytest.raises((ValueError, vkml.DTypeError), match=r"^Adam.*expected") as caught:
        optimizer.load_state_dict(state)
    assert caught.match(text)
    assert plain(optimizer.state_dict()) == before
    twin_parameters, twin = stepped()
    walk(parameters, optimizer, 1)
    walk(twin_parameters, twin, 1)
    assert [p.tolist() for p in parameters] == [p.tolist() for p in twin_parameters]


@pytest.mark.parametrize("value", [vkml.ones(1, 1), vkml.ones(3), "a"])
def test_averages_refused_change_nothing(value):
    model = vkml.nn.Linear(2, 2)
    ema = optim.EMA(model, 0.5)
    state = {"decay": 0.9, "updates": 4, "averages": {n: t + 1 for n, t in ema.averages.items()}}
    state["averages"][list(ema.averages)[-1]] = value
    before = {n: t.tolist() for n, t in ema.averages.items()}
    with pytest.raises(ValueError, match=r"^EMA.load_state_dict: .*expected"):
        ema.load_state_dict(state)
    assert {n: t.tolist() for n, t in ema.averages.items()} == before and (ema.decay, ema.updates) == (0.5, 0)
    for missing in ("decay", "updates", "averages"):
        with pytest.raises(ValueError, match=f"EMA.load_state_dict: expected '{missing}'"):
            ema.load_state_dict({k: v for k, v in ema.state_dict().items() if k != missing})


def test_scalers_refused_change_nothing():
    scaler = optim.GradScaler(init_scale=4.0)
    before = scaler.state_dict()
    for change in ({"scale": float("inf")}, {"growth_factor": 0.5}, {"_growth_tracker": -1}, {"backoff_factor": "a"}):
        with pytest.raises(ValueError, match=r"GradScaler.load_state_dict: .*expected"):
            scaler.load_state_dict({**before, "scale": 8.0, **change})
        assert scaler.state_dict() == before
    for missing in before:
        with pytest.raises(ValueError, match=missing):
            scaler.load_state_dict({k: v for k, v in before.items() if k != missing})


def test_schedules_refused_change_nothing():
    schedule = optim.lr_scheduler.StepLR(stepped()[1], 2)
    before = schedule.state_dict()
    for state in ({**before, "last_epoch": 9, "base_lrs": [1.0, 2.0]}, {**before, "last_epoch": "a"}, {"other": 1}, 3):
        with pytest.raises(ValueError, match=r"StepLR.load_state_dict: .*expected"):
            schedule.load_state_dict(state)
        assert schedule.state_dict() == before


def test_a_sequence_of_schedules_refused_changes_nothing():
    optimizer = stepped()[1]
    parts = [optim.lr_scheduler.LinearWarmup(optimizer, 2), optim.lr_scheduler.StepLR(optimizer, 2)]
    schedule = optim.lr_scheduler.SequentialLR(optimizer, parts, [2])
    before, rate = schedule.state_dict(), optimizer.lr
    first, second = before["schedulers"]
    for saved in ([first], [{**first, "last_epoch": 1}, {**second, "gamma": "a"}], "ab"):
        with pytest.raises(ValueError, match=r"LR.load_state_dict: .*expected"):
            schedule.load_state_dict({**before, "schedulers": saved})
        assert schedule.state_dict() == before and optimizer.lr == rate


MAKERS = {
    "sgd": lambda p: optim.SGD(p, 0.1, momentum=0.9),
    "adam": lambda p: optim.Adam(p, 0.1),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01, centered=True),
    "lion": lambda p: optim.Lion(p, 0.01),
    "adagrad": lambda p: optim.Adagrad(p, 0.1, lr_decay=0.1, initial_accumulator_value=0.5),
    "nadam": lambda p: optim.NAdam(p, 0.1),
}


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("name", MAKERS)
def test_a_copy_goes_on_alike_and_apart(name, again):
    parameters, optimizer = stepped(MAKERS[name])
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    others, other, twin = again((parameters, optimizer, schedule))
    assert twin.optimizer is other and all(a is b for a, b in zip(others, other.param_groups[0]["params"], strict=True))
    kept = [p.tolist() for p in parameters]
    for each in range(3):
        walk(others, other, 1)
        twin.step()
        assert [p.tolist() for p in parameters] == (kept if each == 0 else [p.tolist() for p in parameters])
    assert [p.tolist() for p in parameters] == kept
    for _ in range(3):
        walk(parameters, optimizer, 1)
        schedule.step()
    assert [p.tolist() for p in parameters] == [p.tolist() for p in others]
    assert other.lr == optimizer.lr != 0.1 and plain(other.state_dict()) == plain(optimizer.state_dict())


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_with_gaps(device, name):
    values = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3)
    packed = vkml.tensor(values, device=device, requires_grad=True)
    turned = vkml.tensor(np.ascontiguousarray(values.T), device=device).T.detach().requires_grad_()
    assert not turned.is_contiguous
    first, second = MAKERS[name]([packed]), MAKERS[name]([turned])
    walk([packed], first, 3)
    walk([turned], second, 3)
    assert turned.tolist() == packed.tolist() != values.tolist()
    assert plain(second.state_dict()) == plain(first.state_dict())


def test_parameters_that_cannot_be_updated():
    with pytest.raises(ValueError, match="SGD: params: expected elements with memory"):
        optim.SGD([vkml.ones(1).expand(3).detach().requires_grad_()])

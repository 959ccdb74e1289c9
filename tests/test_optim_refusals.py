"""Settings that are no numbers, not finite or out of range are refused when they are given."""

import math

import pytest

import vkml
from vkml import optim

INF, NAN = math.inf, math.nan


def weight():
    return vkml.ones(1, requires_grad=True)


def schedule(name, *args, **options):
    return getattr(optim.lr_scheduler, name)(optim.SGD([weight()], 0.1, momentum=0.5), *args, **options)


BAD = {optim.Adam: {"eps": (INF, NAN, -1, "a", None), "betas": ((0.9,), (0.9, 0.99, 0.999), 0.9, None, (0.9, "a"))}}
BAD[optim.AdamW] = BAD[optim.Adam]
BAD[optim.Lion] = {"betas": ((0.9,), (0.9, NAN), (-0.1, 0.9))}
BAD[optim.NAdam] = {**BAD[optim.Adam], "momentum_decay": (INF, NAN, -1, "a", None)}
BAD[optim.Adagrad] = {"eps": (NAN, -1), "lr_decay": (NAN, -1, "a"), "initial_accumulator_value": (INF, -1, None)}
BAD[optim.SGD] = {"momentum": (INF, NAN, -1, "a"), "dampening": (NAN, INF, "a", None)}
BAD[optim.RMSprop] = {"momentum": (INF,), "eps": (INF,), "alpha": (NAN, 2, -1, "a")}
OPTIMIZERS = [
    (kind, option, value)
    for kind, options in BAD.items()
    for option, values in {**options, "lr": (INF, NAN, -1, "a", None, [1]), "weight_decay": (INF, NAN, "a")}.items()
    for value in values
]
SCHEDULES = [
    ("StepLR", {"step_size": 2}, {"gamma": (NAN, INF, "a", None), "step_size": (NAN, "a", None)}),
    ("MultiStepLR", {"milestones": [1]}, {"gamma": (NAN,), "milestones": (["a"], [NAN])}),
    ("ExponentialLR", {"gamma": 0.5}, {"gamma": (NAN, INF, "a", -1)}),
    ("ConstantLR", {}, {"factor": (NAN, "a"), "total_iters": ("a", None)}),
    ("LinearLR", {}, {"start_factor": (NAN, 0, "a"), "end_factor": (NAN, 2), "total_iters": (0, "a")}),
    ("CosineAnnealingLR", {"T_max": 3}, {"T_max": (NAN, 0, "a"), "eta_min": (NAN, INF, "a")}),
    ("LinearWarmup", {"warmup_steps": 3}, {"warmup_steps": (NAN, 0, "a")}),
    (
        "OneCycleLR",
        {"max_lr": 1.0, "total_steps": 9},
        {"max_lr": (NAN, INF), "pct_start": (NAN, "a"), "div_factor": (0, NAN), "max_momentum": (NAN, 2)},
    ),
    ("ReduceLROnPlateau", {}, {"factor": (NAN, 1, "a"), "min_lr": (NAN,), "eps": (NAN,), "patience": ("a",)}),
]


@pytest.mark.parametrize(("kind", "option", "value"), OPTIMIZERS)
def test_optimizers(kind, option, value):
    for make in (
        lambda: kind([weight()], **{option: value}),
        lambda: kind([{"params": [weight()], option: value}]),
        lambda: kind([weight()]).add_param_group({"params": [weight()], option: value}),
    ):
        with pytest.raises(vkml.ShapeError, match=rf"^{kind.__name__}: {option}: expected .*, got"):
            make()


@pytest.mark.parametrize(
    ("name", "good", "option", "value"),
    [(name, good, option, v) for name, good, bad in SCHEDULES for option, values in bad.items() for v in values],
)
def test_schedules(name, good, option, value):
    schedule(name, **good)
    with pytest.raises(vkml.ShapeError, match=rf"^{name}: {option}: expected .*, got"):
        schedule(name, **{**good, option: value})


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("init_scale", (INF, NAN, 0, -1, "a", None)),
        ("growth_factor", (INF, NAN, 1, "a")),
        ("backoff_factor", (NAN, 0, 1, "a")),
        ("growth_interval", (NAN, 0, "a", None)),
    ],
)
def test_scalers(option, values):
    for value in values:
        with pytest.raises(vkml.ShapeError, match=rf"^GradScaler: {option}: expected .*, got"):
            optim.GradScaler(**{option: value})
    scaler = optim.GradScaler()
    with pytest.raises(vkml.ShapeError, match="update: new_scale: expected"):
        scaler.update(INF)


def test_clipping():
    w = weight()
    w.grad = vkml.ones(1)
    for value in (NAN, -1, "a", None):
        with pytest.raises(vkml.ShapeError, match="clip_grad_norm_: max_norm: expected a number >= 0, got"):
            vkml.nn.utils.clip_grad_norm_([w], value)
        with pytest.raises(vkml.ShapeError, match="clip_grad_value_: clip_value: expected a number >= 0, got"):
            vkml.nn.utils.clip_grad_value_([w], value)
    for value in (NAN, 0, -1, "a", None):
        with pytest.raises(vkml.ShapeError, match="clip_grad_norm_: norm_type: expected a number above 0, got"):
            vkml.nn.utils.clip_grad_norm_([w], 1.0, norm_type=value)
    assert w.grad.tolist() == [1] and vkml.nn.utils.clip_grad_norm_([w], INF).item() == 1


def test_groups():
    for group in ({"lr": 0.1}, {}):
        with pytest.raises(
            vkml.ShapeError, match="SGD: params: expected groups that are dicts with 'params', got keys"
        ):
            optim.SGD([group])
    with pytest.raises(vkml.ShapeError, match="SGD: params: expected groups that are dicts with 'params', got Tensor"):
        optim.SGD([{"params": [weight()]}, weight()])
    for params in (3, None, [None], [1.0], ["a"]):
        with pytest.raises(vkml.ShapeError, match="SGD: params: expected "):
            optim.SGD([{"params": params}])


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("lr", "a finite number"),
        ("weight_decay", "a finite number >= 0"),
        ("momentum", "a finite number >= 0"),
        ("dampening", "a finite number"),
    ],
)
def test_numbers_of_a_group_that_are_set_later(option, wanted):
    w = weight()
    optimizer = optim.SGD([w], 0.5, momentum=0.5)
    w.grad = vkml.ones(1)
    group = optimizer.param_groups[0]
    for value in (NAN, INF, "a", None):
        for put in (lambda v: group.__setitem__(option, v), lambda v: group.update({option: v})):
            with pytest.raises(vkml.ShapeError, match=f"^SGD: {option}: expected {wanted}, got"):
                put(value)
    with pytest.raises(vkml.ShapeError, match=r"^SGD: lr: expected a finite number, got nan"):
        optimizer.lr = NAN
    optimizer.step()
    assert w.tolist() == [0.5]


@pytest.mark.parametrize(("kind", "option", "value"), [o for o in OPTIMIZERS if o[1:] != ("lr", -1)])
def test_a_group_refuses_later_what_its_constructor_refuses(kind, option, value):
    optimizer = kind([weight()])
    group = optimizer.param_groups[0]
    before, saved = dict(group), optimizer.state_dict()
    saved["param_groups"][0][option] = value
    for change in (
        lambda: group.__setitem__(option, value),
        lambda: group.update({option: value}),
        lambda: group.__ior__({option: value}),
        lambda: optimizer.load_state_dict(saved),
    ):
        with pytest.raises(vkml.ShapeError, match=rf"{option}: expected .*, got"):
            change()
        assert dict(group) == before

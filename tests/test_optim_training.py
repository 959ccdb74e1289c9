"""Captured steps, states of PyTorch, parameters that come and go, accumulation, loss scaling, averages of weights."""

import numpy as np
import pytest

import vkml
from vkml import nn, optim

MAKERS = {
    "SGD": lambda p: optim.SGD(p, 0.1, momentum=0.9),
    "RMSprop": lambda p: optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "Adam": lambda p: optim.Adam(p, 0.05, weight_decay=0.01),
    "AdamW": lambda p: optim.AdamW(p, 0.05),
    "Lion": lambda p: optim.Lion(p, 0.01, weight_decay=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, 0.1, lr_decay=0.1, initial_accumulator_value=0.2),
    "NAdam": lambda p: optim.NAdam(p, 0.05, weight_decay=0.01),
}


def leaves(device, n=3):
    rng = np.random.default_rng(5)
    return [
        vkml.tensor(rng.standard_normal((i + 1, 4)).astype(np.float32), device=device, requires_grad=True)
        for i in range(n)
    ]


def loss_of(parameters):
    return sum((p * p * 0.5 + p).sum() for p in parameters)


def step(parameters, optimizer):
    optimizer.zero_grad()
    loss_of(parameters).backward()
    optimizer.step()


def values(parameters):
    return [p.tolist() for p in parameters]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("warm", [0, 2])
def test_a_captured_step_follows_a_schedule(device, name, warm):
    """Also when the first step of all is the captured one: states and counts go on at every replay."""
    eager, replayed = leaves(device), leaves(device)
    a, b = MAKERS[name](eager), MAKERS[name](replayed)
    schedules = [optim.lr_scheduler.CosineAnnealingLR(o, 8) for o in (a, b)]
    for _ in range(warm):
        step(eager, a)
        step(replayed, b)
    captured = vkml.capture(lambda: step(replayed, b), device)
    step(eager, a)
    for _ in range(6):
        for s in schedules:
            s.step()
        step(eager, a)
        captured.replay()
        assert values(replayed) == values(eager)
    for group in (a.param_groups[0], b.param_groups[0]):
        group["weight_decay"] = 0.3
    step(eager, a)
    captured.replay()
    assert values(replayed) == values(eager)


def test_a_rate_set_inside_a_capture_is_not_repeated(device):
    p = vkml.ones(1, device=device, requires_grad=True)
    p.grad = vkml.ones(1, device=device)
    optimizer = optim.SGD([p], lr=0.5)

    def work():
        optimizer.lr = 0.25
        optimizer.step()

    captured = vkml.capture(work, device)
    optimizer.lr = 0.125
    captured.replay()
    assert p.item() == 1 - 0.25 - 0.125


def test_momentum_may_come_and_go():
    p, q = vkml.ones(1, requires_grad=True), vkml.ones(1, requires_grad=True)
    switched, plain = optim.SGD([p], 0.1), optim.SGD([q], 0.1, momentum=0.5)
    for t in range(6):
        switched.param_groups[0]["momentum"] = 0.5 if t > 1 else 0
        for x, o in ((p, switched), (q, plain)):
            x.grad = vkml.ones(1)
            if t > 1 or o is switched:
                o.step()
    assert p.item() == pytest.approx(q.item() - 0.2, abs=1e-6)
    assert p.item() == pytest.approx(1 - 0.1 * (1 + 1 + 1 + 1.5 + 1.75 + 1.875), abs=1e-6)
    switched.param_groups[0]["momentum"] = 0
    switched.step()
    assert switched.state_dict()["state"][0].keys() == {"step", "bias_correction"}


@pytest.mark.torch
@pytest.mark.parametrize("name", ["SGD", "RMSprop", "Adam", "AdamW", "Adagrad", "NAdam"])
def test_parameters_without_gradients_fall_behind_as_in_torch(device, name):
    torch = pytest.importorskip("torch")
    ours = leaves(device)
    theirs = [torch.tensor(p.numpy().copy(), requires_grad=True) for p in ours]
    options = {
        "SGD": {"momentum": 0.9, "dampening": 0.3},
        "Adagrad": {"lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.3},
        "NAdam": {"betas": (0.8, 0.95), "momentum_decay": 0.1, "weight_decay": 0.1},
    }.get(name, {})
    a, b = getattr(optim, name)(ours, lr=0.01, **options), getattr(torch.optim, name)(theirs, lr=0.01, **options)
    for t in range(9):
        for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            has = t >= 4 if i == 1 else i == 0 or t % 3 == 0
            g = np.full(x.shape, 0.1 * (t + 1), np.float32)
            x.grad = vkml.tensor(g, device=device) if has else None
            y.grad = torch.tensor(g) if has else None
        a.step()
        b.step()
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9}),
        ("SGD", {}),
        ("Adam", {"weight_decay": 0.1}),
        ("AdamW", {"betas": (0.8, 0.95)}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
        ("RMSprop", {}),
        ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
        ("NAdam", {"momentum_decay": 0.2}),
    ],
)
def test_states_travel_to_torch_and_back(device, name, options):
    torch = pytest.importorskip("torch")
    theirs = [torch.tensor(p.numpy().copy(), requires_grad=True) for p in leaves("cpu")]
    b = getattr(torch.optim, name)(theirs, lr=0.02, **options)

    def torch_step(parameters, optimizer):
        optimizer.zero_grad()
        sum((p * p * 0.5 + p).sum() for p in parameters).backward()
        optimizer.step()

    for _ in range(3):
        torch_step(theirs, b)
    ours = [vkml.tensor(p.detach().numpy(), device=device, requires_grad=True) for p in theirs]
    a = getattr(optim, name)(ours, lr=1.0)
    a.load_state_dict(b.state_dict())
    assert a.lr == 0.02
    for _ in range(3):
        torch_step(theirs, b)
        step(ours, a)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=2e-5, atol=2e-6)

    saved = a.state_dict()
    state = {n: {k: torch.tensor(v.numpy()) for k, v in s.items()} for n, s in saved["state"].items()}
    fresh = [torch.tensor(p.numpy().copy(), requires_grad=True) for p in ours]
    c = getattr(torch.optim, name)(fresh, lr=1.0, **options)
    c.load_state_dict({"state": state, "param_groups": [{**c.param_groups[0], **saved["param_groups"][0]}]})
    torch_step(fresh, c)
    step(ours, a)
    for x, y in zip(ours, fresh, strict=True):
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.torch
def test_a_state_that_means_something_else_is_refused():
    torch = pytest.importorskip("torch")
    p = torch.ones(1, requires_grad=True)
    saved = torch.optim.Adam([p], amsgrad=True).state_dict()
    with pytest.raises(ValueError, match="amsgrad: expected False"):
        optim.Adam([vkml.ones(1, requires_grad=True)]).load_state_dict(saved)
    optimizer = optim.SGD([vkml.ones(1, requires_grad=True)], lr=0.5)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr: expected"):
        optimizer.load_state_dict(saved)
    assert optimizer.lr == 0.5


@pytest.mark.parametrize("name", MAKERS)
def test_accumulated_gradients_are_one_large_batch(device, name):
    rng = np.random.default_rng(0)
    data = vkml.tensor(rng.standard_normal((12, 5)).astype(np.float32), device=device)
    target = vkml.tensor(rng.standard_normal((12, 2)).astype(np.float32), device=device)
    models = []
    for pieces in (1, 4):
        vkml.manual_seed(3)
        model = nn.Linear(5, 2).to(device)
        optimizer = MAKERS[name](model.parameters())
        for _ in range(5):
            optimizer.zero_grad()
            for i in range(0, 12, 12 // pieces):
                part = slice(i, i + 12 // pieces)
                (nn.mse_loss(model(data[part]), target[part]) / pieces).backward()
            optimizer.step()
        models.append(model)
    # The sums are taken in another order; Lion takes signs, which agree unless a sum is within rounding of 0.
    np.testing.assert_allclose(models[0].weight.numpy(), models[1].weight.numpy(), rtol=1e-4, atol=1e-5)


# Loss scaling ---------------------------------------------------------------------------------------------------------


def test_half_precision_needs_the_scale(device):
    """A gradient of 2^-26 is 0 in float16, and 2^-16 once it is scaled by 2^10; the step then takes it back."""
    results = []
    for enabled in (False, True):
        p = vkml.full((4,), 1.0, dtype="float16", device=device, requires_grad=True)
        scaler = optim.GradScaler(init_scale=2.0**10, enabled=enabled)
        scaler.scale((p * 2.0**-13).float() * 2.0**-13).sum().backward()
        results.append(p.grad.tolist())
    assert results == [[0.0] * 4, [2.0**-16] * 4]


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("name", MAKERS)
def test_a_step_with_bad_gradients_does_not_happen(device, name, bad):
    skipped, plain = leaves(device), leaves(device)
    a, b = MAKERS[name](skipped), MAKERS[name](plain)
    scaler = optim.GradScaler(init_scale=8.0, growth_interval=100)
    for t in range(5):
        a.zero_grad()
        scaler.scale(loss_of(skipped)).backward()
        if t == 2:  # one element of one tensor, before the device has been asked for anything
            skipped[1].grad[1, 2] = bad
        scaler.step(a)
        scaler.update()
        if t != 2:
            step(plain, b)
    assert scaler.get_scale() == 4.0
    assert values(skipped) == values(plain)  # powers of two scale without rounding
    assert str(a.state_dict()["state"]) == str(b.state_dict()["state"])


def test_the_scale_is_decided_without_a_host_read(device):
    """A capture refuses every host read."""
    p = leaves(device)
    optimizer, scaler = optim.Adam(p, 0.05), optim.GradScaler(init_scale=4.0, growth_interval=3)
    blow = vkml.zeros((), device=device)

    def work():
        optimizer.zero_grad()
        (scaler.scale(loss_of(p)) + (p[0] * blow).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    work()
    captured = vkml.capture(work, device)
    captured.replay()
    assert scaler.get_scale() == 8.0
    before = values(p)
    blow.fill_(float("inf"))
    captured.replay()
    assert scaler.get_scale() == 4.0 and values(p) == before
    blow.zero_()
    captured.replay()
    assert scaler.get_scale() == 4.0 and values(p) != before


@pytest.mark.torch
def test_the_scale_follows_torch():
    torch = pytest.importorskip("torch")
    pattern = [0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    options = {"init_scale": 16.0, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}
    found = []
    for library, scaler in ((vkml, optim.GradScaler(**options)), (torch, torch.amp.GradScaler("cpu", **options))):
        p = library.ones(2, requires_grad=True)
        optimizer = library.optim.SGD([p], lr=0.01)
        seen = []
        for bad in pattern:
            optimizer.zero_grad()
            scaler.scale((p * p).sum()).backward()
            if bad:
                p.grad[0] = float("inf")
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            seen.append((scaler.get_scale(), *p.tolist()))
        found.append((seen, scaler.state_dict()))
    for ours, theirs in zip(found[0][0], found[1][0], strict=True):
        assert ours == pytest.approx(theirs)
    assert found[0][1] == found[1][1]
    again = optim.GradScaler()
    again.load_state_dict(found[1][1])
    assert again.state_dict() == found[1][1]


def test_scaler_clips_and_refuses():
    p = vkml.tensor([3.0, 4.0], requires_grad=True)
    optimizer, scaler = optim.SGD([p], 1.0), optim.GradScaler(init_scale=1024.0)
    losses = scaler.scale([(p * p).sum() / 2, p.sum()])
    assert isinstance(losses, list) and losses[1].item() == 7 * 1024
    losses[0].backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [3, 4]
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5
    with pytest.raises(vkml.Error, match="one call since update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    np.testing.assert_allclose(p.tolist(), [2.4, 3.2], rtol=1e-5)
    with pytest.raises(vkml.Error, match="one call since update"):
        scaler.step(optimizer)
    scaler.update(64.0)
    assert scaler.get_scale() == 64
    with pytest.raises(vkml.Error, match="expected a step before"):
        scaler.update()
    optimizer.zero_grad()
    with pytest.raises(vkml.Error, match="at least one gradient"):
        scaler.step(optimizer)
    with pytest.raises(ValueError, match="GradScaler: backoff_factor"):
        optim.GradScaler(backoff_factor=1.5)
    off = optim.GradScaler(enabled=False)
    assert off.scale(p) is p and off.get_scale() == 1 and off.state_dict() == {} and not off.is_enabled()


# Averages of weights --------------------------------------------------------------------------------------------------


def test_average_of_weights(device, rng):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm2d(2)).to(device)
    ema = optim.EMA(model, decay=0.9)
    wanted = {n: t.numpy().astype(np.float64) for n, t in model.named_parameters()}
    for _ in range(5):
        for name, p in model.named_parameters():
            p.assign_(vkml.tensor(rng.standard_normal(p.shape).astype(np.float32), device=device))
            wanted[name] = wanted[name] + (1 - 0.9) * (p.numpy() - wanted[name])
        model[1].running_mean.fill_(7.0)
        ema.update()
    for name, w in wanted.items():
        np.testing.assert_allclose(ema.averages[name].numpy(), w, rtol=1e-5, atol=1e-6)
    assert ema.averages["1.running_mean"].tolist() == [7, 7] and ema.updates == 5
    own = model[0].weight.tolist()
    with ema.applied() as averaged:
        assert averaged[0].weight.tolist() == ema.averages["0.weight"].tolist() != own
    assert model[0].weight.tolist() == own
    other = optim.EMA(model, decay=0.5)
    other.load_state_dict(ema.state_dict())
    assert other.decay == 0.9 and other.averages["0.bias"].tolist() == ema.averages["0.bias"].tolist()
    ema.copy_to()
    assert model[0].weight.tolist() == ema.averages["0.weight"].tolist()


def test_averages_take_one_dispatch_and_follow_a_move(vulkan):
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(20)]).to(vulkan)
    ema = optim.EMA(model)
    ema.update()
    before = vkml.dispatch_count(vulkan)
    ema.update()
    assert vkml.dispatch_count(vulkan) - before == 1
    model.to("cpu")
    ema.update()
    assert all(t.device == "cpu" for t in ema.averages.values())
    with pytest.raises(ValueError, match="decay"):
        optim.EMA(model, decay=2)
    model[0] = nn.Linear(2, 2, bias=False)
    with pytest.raises(ValueError, match="expected the model to keep"):
        ema.update()


def test_clipping_takes_few_dispatches(device):
    parameters = [vkml.ones(i % 5 + 1, device=device, requires_grad=True) for i in range(60)]
    for p in parameters:
        p.grad = vkml.full(p.shape, 3.0, device=device)
    before = vkml.dispatch_count(device)
    norm = nn.utils.clip_grad_norm_(parameters, 1.0)
    assert vkml.dispatch_count(device) - before <= 8
    assert norm.item() == pytest.approx(3 * np.sqrt(sum(p.numel() for p in parameters)), rel=1e-6)
    assert nn.utils.clip_grad_norm_(parameters, 10.0).item() == pytest.approx(1, rel=1e-5)

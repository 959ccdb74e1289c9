"""capture(fn) records one call; replay() submits it again on the same tensors."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close, tensor

import vkml


def test_replay_reads_what_the_inputs_hold_then(device: str) -> None:
    x = tensor(np.arange(4.0), "float32", device)
    out = vkml.zeros((4,), device=device)

    def step() -> None:
        out.assign_(vkml.exp(x * 0.5) + x)

    capture = vkml.capture(step, device)
    assert_close(out, np.exp(np.arange(4) * 0.5) + np.arange(4), rtol=1e-6)
    for k in (1.0, -2.0):
        x.assign_(tensor(np.full(4, k), "float32", device))
        capture.replay()
        assert_close(out, np.full(4, np.exp(k * 0.5) + k), rtol=1e-6)


def test_captured_training_step_equals_the_eager_one(device: str) -> None:
    rng = np.random.default_rng(1)
    data = tensor(rng.normal(size=(16, 6)), "float32", device)
    target = tensor(rng.normal(size=(16, 1)), "float32", device)

    def fresh() -> tuple[vkml.Tensor, vkml.Tensor]:
        start = np.random.default_rng(2).normal(size=(6, 1))
        return tensor(start, "float32", device, requires_grad=True), vkml.zeros((), device=device)

    def step(w: vkml.Tensor, loss: vkml.Tensor) -> None:
        difference = data @ w - target
        value = vkml.mean(difference * difference)
        (gradient,) = vkml.grad([value], [w])
        with vkml.no_grad():
            w.assign_(w - gradient * 0.1)
            loss.assign_(value)

    eager = fresh()
    for _ in range(12):
        step(*eager)
    replayed = fresh()
    capture = vkml.capture(lambda: step(*replayed), device)
    for _ in range(11):
        capture.replay()
    assert_close(replayed[0].detach(), eager[0].detach())
    assert_close(replayed[1], eager[1])


def test_captured_memory_survives_other_work(device: str) -> None:
    x = tensor(np.ones(1000), "float32", device)
    out = vkml.zeros((1000,), device=device)
    capture = vkml.capture(lambda: out.assign_((x * 3.0 + 1.0) * 2.0), device)
    for _ in range(30):
        noise = vkml.full((1000,), 9.0, device=device) * 2.0
    capture.replay()
    assert_close(out, np.full(1000, 8.0))
    assert float(noise[0]) == 18.0


def test_reading_inside_is_refused_and_leaves_the_stream_usable(device: str) -> None:
    x = vkml.ones((3,), device=device)
    with pytest.raises(vkml.Error, match="capture"):
        vkml.capture(lambda: (x + 1.0).numpy(), device)
    with pytest.raises(ZeroDivisionError):
        vkml.capture(lambda: 1 / 0, device)
    assert_close(x + 1.0, np.full(3, 2.0))


def test_tensors_made_inside_outlive_the_capture(device: str) -> None:
    x = tensor(np.arange(500.0), "float32", device)
    kept = []
    for _ in range(20):
        capture = vkml.capture(lambda: kept.append(x * 2.0), device)
        del capture
        noise = [vkml.full((500,), 9.0, device=device) for _ in range(4)]
    for y in kept:
        assert_close(y, np.arange(500.0) * 2)
    assert float(noise[0][0]) == 9.0


def random_step(x: vkml.Tensor, out: vkml.Tensor, slope: vkml.Tensor) -> None:
    """Dropout with its gradient, attention dropout, and plain draws, all of the default generator."""
    y = vkml.dropout(x, 0.5) * vkml.rand(4, 8, 16, device=str(x.device))
    (gradient,) = vkml.grad([vkml.sum(y)], [x])
    z = vkml.nn.functional.scaled_dot_product_attention(y, y, y, dropout_p=0.5)
    with vkml.no_grad():
        out.assign_(y + z)
        slope.assign_(gradient)


def test_replays_draw_what_eager_steps_draw(device: str) -> None:
    x = tensor(np.random.default_rng(3).normal(size=(4, 8, 16)), "float32", device, requires_grad=True)
    out, slope = (vkml.zeros((4, 8, 16), device=device) for _ in range(2))
    vkml.manual_seed(11)
    expected = []
    for _ in range(4):
        random_step(x, out, slope)
        expected.append((out.numpy().copy(), slope.numpy().copy()))
    assert not np.array_equal(expected[0][0], expected[1][0])
    vkml.manual_seed(11)
    capture = vkml.capture(lambda: random_step(x, out, slope), device)
    for i, (value, gradient) in enumerate(expected):
        if i > 0:
            capture.replay()
        assert np.array_equal(out.numpy(), value)
        # The forward's mask and the backward's are one.
        assert np.array_equal(slope.numpy(), gradient)


def test_draws_between_replays_are_others(device: str) -> None:
    out = vkml.zeros((64,), device=device)
    vkml.manual_seed(5)
    capture = vkml.capture(lambda: out.assign_(vkml.rand(64, device=device)), device)
    seen = [out.numpy().copy()]
    for _ in range(3):
        seen.append(vkml.rand(64, device=device).numpy())
        capture.replay()
        seen.append(out.numpy().copy())
    assert len({s.tobytes() for s in seen}) == len(seen)


def test_explicit_seeds_stay_in_a_replay(device: str) -> None:
    out, drawn = vkml.zeros((64,), device=device), vkml.zeros((64,), device=device)
    vkml.manual_seed(0)

    def step() -> None:
        drawn.assign_(vkml.rand(64, device=device))  # draw (0, 0) of the default generator
        out.assign_(vkml.rand(64, device=device, seed=0))  # the same numbers, asked for by name

    capture = vkml.capture(step, device)
    first = out.numpy().copy()
    assert np.array_equal(drawn.numpy(), first)
    capture.replay()
    assert np.array_equal(out.numpy(), first)
    assert not np.array_equal(drawn.numpy(), first)


def test_replay_within_a_capture_is_refused(device: str) -> None:
    x = vkml.zeros((2,), device=device)
    inner = vkml.capture(lambda: x.add_(1), device)
    with pytest.raises(vkml.Error, match="replay: expected no replay within a capture"):
        vkml.capture(lambda: (x.mul_(2), inner.replay()), device)
    inner.replay()  # still usable
    assert x.numpy().tolist() == [3, 3]

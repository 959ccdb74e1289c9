"""Operators are recorded and run later: the bits must be those of a run that waits after every one."""

from __future__ import annotations

import numpy as np
from helpers import assert_same_bits, tensor

import vkml


def chained(device: str, steps: int, wait: bool) -> vkml.Tensor:
    """Tiny operators that depend on each other through fresh, reused and viewed memory."""
    rng = np.random.default_rng(3)
    x = tensor(rng.uniform(-1, 1, (5, 7)), "float32", device)
    kept = tensor(rng.uniform(-1, 1, (5, 7)), "float32", device)
    for i in range(steps):
        match i % 6:
            case 0:
                x = x * 1.0009765625 + kept
            case 1:
                x = vkml.maximum(x, kept * -0.5)
            case 2:
                x = (x.transpose(0, 1) - 0.125).transpose(0, 1)
            case 3:
                x = x * 0.5 + x[:, :1]
            case 4:
                x = vkml.tanh(x)
            case _:
                kept = kept * 0.75 + x * 0.25
        if wait:
            vkml.synchronize(device)
    return x


def test_thousand_chained_operators_need_no_wait(device: str) -> None:
    assert_same_bits(chained(device, 1000, wait=False), chained(device, 1000, wait=True))


def test_eager_mode_changes_no_bits(device: str) -> None:
    with vkml.eager_mode():
        assert vkml.is_eager()
        eager = chained(device, 60, wait=False)
    assert not vkml.is_eager()
    assert_same_bits(eager, chained(device, 60, wait=False))


def test_reads_and_writes_between_operators_see_the_right_values(device: str) -> None:
    x = vkml.zeros((64,), device=device)
    for i in range(50):
        x[i] = float(i + 1)
        y = x * 2.0
        x[i] = 0.5  # y was recorded before and must keep the old value
        assert float(y[i]) == 2.0 * (i + 1)
    np.testing.assert_array_equal(x.numpy(), np.where(np.arange(64) < 50, 0.5, 0.0).astype(np.float32))


def test_uploads_do_not_overtake_each_other(device: str) -> None:
    tensors = [vkml.tensor(np.full(300, i, np.float32), device=device) + 1.0 for i in range(200)]
    for i, t in enumerate(tensors):
        assert (t.numpy() == i + 1).all()

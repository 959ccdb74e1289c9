"""A small training run, for whatever must not grow while training goes on. Also run by bench/steady_state.py."""

from __future__ import annotations

import numpy as np

import vkml

WATCHED = ("in_use_bytes", "live_allocations", "device_allocations", "reserved_bytes", "block_count", "pipelines")


def usage(device: str) -> dict[str, int]:
    """What must stay flat; taken when the device is idle."""
    vkml.synchronize(device)
    stats = vkml.memory_stats(device) | {"pipelines": vkml._core._pipeline_count(device)}
    return {name: int(stats[name]) for name in WATCHED}


def train(device: str, steps: int, settle: int = 10) -> tuple[dict[str, int], dict[str, int], list[float]]:
    """Usage after `settle` steps and after all of them, and a few of the losses."""
    rng = np.random.default_rng(0)
    vkml.manual_seed(0)
    data = vkml.tensor(rng.normal(size=(64, 16)).astype(np.float32), device=device)
    target = vkml.tensor(rng.integers(0, 4, 64), device=device)
    model = vkml.nn.Sequential(vkml.nn.Linear(16, 24), vkml.nn.ReLU(), vkml.nn.Dropout(0.1), vkml.nn.Linear(24, 4))
    model.to(device)
    optimizer = vkml.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    settled: dict[str, int] = {}
    for step in range(steps):
        loss = vkml.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            losses.append(loss.item())
        if step == settle - 1:
            settled = usage(device)
    return settled, usage(device), losses

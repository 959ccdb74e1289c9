"""Training reaches a state in which nothing grows. bench/steady_state.py runs the full 2,000 steps."""

from __future__ import annotations

import gc

from runtime_helpers import run_python
from training import train, usage

import vkml


def test_training_grows_nothing(device: str) -> None:
    settled, final, losses = train(device, 300)
    assert losses[-1] < losses[0] / 2, losses
    assert final == settled


def test_no_grad_frees_intermediates_at_once(device: str) -> None:
    x = vkml.ones((1 << 18,), device=device).requires_grad_()
    with vkml.no_grad():
        vkml.reset_peak_memory(device)
        before = vkml.memory_stats(device)["in_use_bytes"]
        y = x
        for _ in range(50):
            y = y * 1.5
        assert vkml.memory_stats(device)["peak_in_use_bytes"] <= before + 3 * (1 << 20) * 9 // 8


def test_dropping_tensors_and_the_cache_returns_memory(device: str) -> None:
    gc.collect()
    before = usage(device)
    x = vkml.ones((20 << 20,), device=device) + 1.0
    assert float(x[5]) == 2.0
    assert vkml.memory_stats(device)["in_use_bytes"] >= before["in_use_bytes"] + (80 << 20)
    del x
    vkml.empty_cache(device)
    after = usage(device)
    assert after["in_use_bytes"] == before["in_use_bytes"]
    assert after["reserved_bytes"] <= before["reserved_bytes"]


def test_cycles_with_graphs_are_collected(device: str) -> None:
    gc.collect()
    before = vkml.memory_stats(device)["live_allocations"]
    for _ in range(20):
        model = vkml.nn.Sequential(vkml.nn.Linear(8, 8), vkml.nn.Linear(8, 8)).to(device)
        model.myself = [model]  # a reference cycle
        model.last = vkml.sum(model(vkml.ones((2, 8), device=device)))
        del model
    gc.collect()
    vkml.synchronize(device)
    assert vkml.memory_stats(device)["live_allocations"] <= before + 2


def test_small_model_in_a_fresh_process_needs_few_allocations() -> None:
    run_python("""
        import sys; sys.path[:0] = [TESTS + "/runtime"]
        from training import train
        settled, final, losses = train("cpu", 50)
        assert settled == final and final["device_allocations"] <= 4, (settled, final)
    """)

"""Timing: warm first, then medians of samples long enough to measure, the peers in turn within one process.

A turn is long: what ran before decides the clock, because a GPU at its power limit slows down for tens of milliseconds.
So each library first runs unrecorded until the device has settled to what that library draws.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import vkml

WARM_SECONDS = 0.2  # an idle GPU clocks low
SAMPLE_SECONDS = 1e-2  # the wait at its end, some 50 us, is part of it
TURNS = 3
SETTLE_SECONDS = 0.1  # of each turn, not recorded
TURN_SECONDS = 0.1
FEWEST_SAMPLES = 2  # of each turn
LONGEST_SECONDS = 20
PROFILED_CALLS = 10


@dataclass
class Runner:
    """Something to time: `call` starts the work, `wait` returns when all of it is done."""

    call: Callable[[], object]
    wait: Callable[[], object]

    def sample(self, calls: int) -> float:
        """Seconds per call."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(calls):
            self.call()
        self.wait()
        return (time.perf_counter() - begin) / calls


def warm(runner: Runner, seconds: float) -> int:
    """Warms up and says how many calls make a sample."""
    runner.call()
    runner.wait()
    begin, calls, per_call = time.perf_counter(), 1, 0.0
    while time.perf_counter() - begin < seconds:
        per_call = runner.sample(calls)
        calls = min(max(1, round(SAMPLE_SECONDS / max(per_call, 1e-8))), 4096)
    return calls


def turn(runner: Runner, calls: int, settle: float) -> list[float]:
    """Samples after `settle` seconds of the same work."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < settle:
        runner.sample(calls)
    samples, begin = [runner.sample(calls)], time.perf_counter()
    while time.perf_counter() - begin < TURN_SECONDS or len(samples) < FEWEST_SAMPLES:
        samples.append(runner.sample(calls))
    return samples


def measure(runners: Sequence[Runner], warm_seconds: float = WARM_SECONDS) -> list[float]:
    """The median seconds per call of each, in turns, so that a drift of the machine meets all."""
    calls = [warm(r, warm_seconds) for r in runners]
    samples: list[list[float]] = [[] for _ in runners]
    begin = time.perf_counter()
    for _ in range(TURNS):
        for runner, count, times in zip(runners, calls, samples, strict=True):
            times.extend(turn(runner, count, SETTLE_SECONDS if len(runners) > 1 else 0))
        if time.perf_counter() - begin > LONGEST_SECONDS:
            break
    return [statistics.median(times) for times in samples]


def kernel_seconds(call: Callable[[], object], device: str) -> float:
    """What the device's clock says of one call: its dispatches without the host and without the gaps between them."""
    with vkml.profiler.profile(device) as p:
        for _ in range(PROFILED_CALLS):
            call()
    each = len(p.records) // PROFILED_CALLS
    calls = [p.records[i * each : (i + 1) * each] for i in range(PROFILED_CALLS)]
    return 1e-3 * statistics.median(sum(r.gpu_ms for r in records) for records in calls)


@dataclass
class Floor:
    """What the device reaches with a kernel that does nothing else."""

    copies: list[tuple[float, float]]  # bytes read and written, seconds; ascending
    flops_per_second: float

    @property
    def bytes_per_second(self) -> float:
        size, seconds = self.copies[-1]
        return size / seconds

    def copy_seconds(self, bytes: float) -> float:
        """Time of a copy that moves as much: small ones live in caches, and launches count."""
        sizes, times = zip(*self.copies, strict=True)
        if bytes >= sizes[-1]:
            return bytes / self.bytes_per_second
        return float(np.interp(bytes, (0.0, *sizes), (times[0] / 2, *times)))

    def share(self, seconds: float, bytes: float, flops: float | None) -> float:
        """Achieved fraction of the larger of the two lower bounds on the time."""
        return max(self.copy_seconds(bytes), (flops or 0) / self.flops_per_second) / seconds


def measure_floor(device: str) -> Floor:
    """Copies of several sizes, the last far beyond any cache, timed as every case is; and the peak FMA rate."""
    real_gpu = device != "cpu" and device_type(device) != "cpu"
    copies = []
    for power in range(20, 30, 2) if real_gpu else (16, 20, 24):
        x = vkml.tensor(np.resize(np.random.default_rng(0).random(1 << 16, np.float32), 1 << power), device=device)
        (seconds,) = measure([Runner(x.clone, lambda: vkml.synchronize(device))])
        copies.append((8.0 * (1 << power), seconds))
    return Floor(copies, vkml._core._peak_fma(device))


def device_type(device: str) -> str:
    """ "cpu" for the CPU and for Vulkan devices that are one."""
    return next(d.type for d in vkml.devices() if str(d.device) == device)

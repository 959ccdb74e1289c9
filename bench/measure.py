"""Timing: warm first, then medians of samples long enough to measure, the peers in turn within one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import vkml

WARM_SECONDS = 0.3  # an idle GPU clocks low
SAMPLE_SECONDS = 2e-3
TOTAL_SECONDS = 0.5
FEWEST_SAMPLES = 5


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


def warm(runner: Runner) -> int:
    """Warms up and says how many calls make a sample."""
    runner.call()
    runner.wait()
    begin, calls, per_call = time.perf_counter(), 1, 0.0
    while time.perf_counter() - begin < WARM_SECONDS:
        per_call = runner.sample(calls)
        calls = min(max(1, round(SAMPLE_SECONDS / max(per_call, 1e-8))), 4096)
    return calls


def measure(runners: Sequence[Runner]) -> list[float]:
    """The median seconds per call of each, sampled in turn so that all meet the same machine."""
    calls = [warm(r) for r in runners]
    samples: list[list[float]] = [[] for _ in runners]
    begin = time.perf_counter()
    while time.perf_counter() - begin < TOTAL_SECONDS * len(runners) or len(samples[0]) < FEWEST_SAMPLES:
        for runner, count, times in zip(runners, calls, samples, strict=True):
            if len(runners) > 1:
                runner.sample(1)  # a device that turns to another context loses 0.2 ms or more, which is nobody's
            times.append(runner.sample(count))
        if time.perf_counter() - begin > 20 and len(samples[0]) >= 2:
            break
    return [statistics.median(times) for times in samples]


@dataclass
class Floor:
    """What the device reaches with a kernel that does nothing else."""

    bytes_per_second: float
    flops_per_second: float

    def share(self, seconds: float, bytes: float, flops: float | None) -> float:
        """Achieved fraction of the larger of the two lower bounds on the time."""
        return max(bytes / self.bytes_per_second, (flops or 0) / self.flops_per_second) / seconds


def measure_floor(device: str) -> Floor:
    """Copy bandwidth over a tensor far beyond any cache (read and write counted), and the peak FMA rate."""
    real_gpu = device != "cpu" and device_type(device) != "cpu"
    elements = (1 << 28) if real_gpu else (1 << 24)
    values = np.random.default_rng(0).random(1 << 20, np.float32)
    x = vkml.tensor(np.resize(values, elements), device=device)
    (seconds,) = measure([Runner(lambda: x.clone(), lambda: vkml.synchronize(device))])
    return Floor(8.0 * elements / seconds, vkml._core._peak_fma(device))


def device_type(device: str) -> str:
    """ "cpu" for the CPU and for Vulkan devices that are one."""
    return next(d.type for d in vkml.devices() if str(d.device) == device)

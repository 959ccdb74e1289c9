"""`python -m vkml tune`: times the pipelines of matmul on a device and stores which is best for which shapes."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np

import vkml

from . import _core

__all__ = ["main", "tune"]

Shape = tuple[int, int, int]  # m, k, n

SQUARES: list[Shape] = [(n, n, n) for n in (256, 512, 1024, 2048, 4096, 8192)]
OTHERS: list[Shape] = [
    (512, 65536, 512), (64, 4096, 4096), (16, 4096, 4096), (4096, 4096, 64), (65536, 256, 256), (4096, 64, 4096),
]  # fmt: skip
QUICK: list[Shape] = [(64, 64, 64), (256, 256, 256), (16, 4096, 64)]
WORDS = {"float32": ["highest", "high", "medium"], "float16": ["highest"], "bfloat16": ["highest"]}
SAMPLE_SECONDS = 2e-3
# Of no use past a size where they would only take long.
SLOW = {"gemm_naive": 2e9, "gemm_tiled": 2e10, "gemm_db": 2e10, "gemv": 2e9, "gemm_reg": 2e11, "gemm_split_k": 2e11}


def seconds_per_call(call, wait, warm: float, samples: int) -> float:
    """The median of samples that are long enough to measure."""
    call()
    wait()
    begin, calls = time.perf_counter(), 1
    while time.perf_counter() - begin < warm:
        started = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        calls = min(4096, max(1, round(calls * SAMPLE_SECONDS / max(time.perf_counter() - started, 1e-7))))
    times = []
    for _ in range(samples):
        started = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - started) / calls)
    return statistics.median(times)


def ran(call) -> str:
    """The pipeline that a call takes."""
    vkml.record_decisions(8)
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == "matmul.kernel"][-1]["chose"]


def candidates(call, work: float, names: list[str]) -> Iterator[str]:
    """The pipelines that take this product on this device."""
    for name in names or _core._gemm_names():
        if work > SLOW.get(name, float("inf")):
            continue
        _core._force_gemm(name)
        if ran(call) == name:
            yield name


def best(shape: Shape, dtype: str, device: str, names: list[str], warm: float, samples: int) -> list[tuple[float, str]]:
    """Seconds and name of every pipeline whose result is right, the fastest first."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = vkml.tensor(rng.standard_normal((m, k)).astype(np.float32), dtype=dtype, device=device)
    b = vkml.tensor(rng.standard_normal((k, n)).astype(np.float32), dtype=dtype, device=device)
    call, wait = (lambda: a @ b), (lambda: vkml.synchronize(device))
    _core._force_gemm("gemm_naive" if 2.0 * m * k * n < 1e9 else "")
    expected = call().to(dtype="float32").numpy()
    scale = float(np.abs(expected).mean()) + 1e-30
    found = []
    try:
        for name in candidates(call, 2.0 * m * k * n, names):
            error = float(np.abs(call().to(dtype="float32").numpy() - expected).mean()) / scale
            if not error < 0.02:
                print(f"  {name}: wrong by {error:.2g}, left out")
                continue
            found.append((seconds_per_call(call, wait, warm, samples), name))
    finally:
        _core._force_gemm("")
    return sorted(found)


def tune(
    device: str, shapes: list[Shape], dtypes: list[str], names: list[str], warm: float = 0.3, samples: int = 7
) -> str:
    """Measures the pipelines named, or all, and stores the winners; returns the file's path."""
    before = vkml.get_float32_matmul_precision()
    winners = []
    try:
        for dtype in dtypes:
            for word in WORDS[dtype]:
                vkml.set_float32_matmul_precision(word)
                for m, k, n in shapes:
                    ranking = best((m, k, n), dtype, device, names, warm, samples)
                    if word != "highest":  # elsewhere these words are computed in highest
                        ranking = [r for r in ranking if "coopmat" in r[1] or "high" in r[1]]
                    if not ranking:
                        continue
                    seconds, name = ranking[0]
                    winners.append((dtype, word, m, n, k, name))
                    second = f", {ranking[1][1]} {ranking[1][0] / seconds:.2f}x" if len(ranking) > 1 else ""
                    rate = 2e-12 * m * k * n / seconds
                    print(f"{dtype} {word} {m}x{k}x{n}: {name} {rate:.2f} TFLOP/s{second}", flush=True)
    finally:
        vkml.set_float32_matmul_precision(before)
    return _core._save_gemm_tuning(device, winners)


def read_shape(text: str) -> Shape:
    m, k, n = (int(extent) for extent in text.split("x"))
    return m, k, n


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m vkml tune", description=__doc__)
    parser.add_argument("--device", default="vulkan", help="vulkan or vulkan:N")
    parser.add_argument("--quick", action="store_true", help="a few small shapes only")
    parser.add_argument("--shape", action="append", type=read_shape, metavar="MxKxN", help="only this; may be repeated")
    parser.add_argument("--pipeline", action="append", default=[], choices=_core._gemm_names(), help="likewise")
    parser.add_argument("--dtype", action="append", choices=list(WORDS), help="only this one; may be repeated")
    options = parser.parse_args(arguments)
    device = str(vkml.device(options.device))
    if device == "cpu":
        parser.error("the CPU has nothing to tune")
    shapes = options.shape or (QUICK if options.quick else SQUARES + OTHERS)
    warm, samples = (0.02, 3) if options.quick else (0.3, 7)
    print("wrote " + tune(device, shapes, options.dtype or list(WORDS), options.pipeline, warm, samples))
    return 0

"""Times Kimi Delta Attention and checks what it timed.

    python -m bench.kda [--device vulkan:0] [--small] [--only forward backward decode few long peer] [--seconds 230]

A line per case as soon as it is known: median time, fraction of the larger floor (bytes / copy rate, FLOP / matrix
rate of an H200), the bar, relative RMS against a float64 recurrence over a few heads picked at random (the worst of
them; on CUDA through torch where there is one, else in NumPy), and the kernels that ran. flash-linear-attention comes
last, its kernels compiled before anything is timed (`peer`: its time, and that time over ours).
A case that would begin after --seconds is skipped in words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkml

from . import kda_peer
from .kda_reference import Reference
from .measure import Runner, measure

COPY, MATRIX, F32 = 4.0e12, 230e12, 44.6e12  # bytes and FLOP per second of an H200 through Vulkan
K = V = 128
NAMES = ("dq", "dk", "dv", "dg", "db", "dS")


@dataclass(frozen=True)
class Case:
    kind: str  # forward, backward (with the forward before it), decode
    part: str  # what --only calls it
    B: int
    H: int
    T: int
    dtype: str = "bfloat16"
    precision: str = "strict"
    bar: float = 0.0  # milliseconds, or TB/s of decode
    boundaries: bool = False

    def __str__(self) -> str:
        size = f"B{self.B} " + (f"T{self.T} " if self.kind != "decode" else "") + f"H{self.H}"
        name = "forward+backward" if self.kind == "backward" else self.kind
        return f"{name} {size} {self.dtype}" + ("" if self.kind == "decode" else f" {self.precision}")


CASES = [
    Case("forward", "forward", 1, 32, 8192, precision="fast", bar=0.60),
    Case("backward", "backward", 1, 32, 8192, precision="fast", bar=3.0),
    Case("decode", "decode", 64, 32, 1, bar=3.0),
    Case("forward", "forward", 1, 32, 8192, bar=2.5),
    Case("forward", "forward", 1, 32, 8192, "float32", bar=2.5),
    Case("backward", "backward", 1, 32, 8192),
    Case("backward", "backward", 1, 32, 8192, "float32"),
    Case("decode", "decode", 64, 32, 1, "float32"),
    Case("forward", "few", 1, 4, 32768, precision="fast"),
    Case("forward", "few", 1, 4, 32768),
    Case("forward", "forward", 1, 32, 32768, precision="fast", bar=2.2),
    Case("backward", "backward", 4, 32, 8192, precision="fast"),
    Case("forward", "long", 8, 32, 65536, precision="fast", boundaries=True),
    Case("forward", "long", 8, 32, 65536, boundaries=True),
]
SMALL = [
    Case("forward", "forward", 1, 4, 512),
    Case("forward", "forward", 1, 4, 512, "float32"),
    Case("backward", "backward", 1, 4, 512),
    Case("decode", "decode", 4, 4, 1),
    Case("forward", "few", 1, 1, 2048),
]


def floor(case: Case, kind: str, itemsize: int) -> float:
    """Seconds, from the bytes and multiply-adds per token and head that kda.md counts."""
    tokens, C = case.B * case.H * case.T, (64 + 16) / 2
    moved = {
        "forward": itemsize * (2 * K + 2 * V) + 4 * K + 4 + (4 * K * V / 64 if case.boundaries else 0),
        "backward": itemsize * (4 * K + 3 * V) + 8 * K + 8 + 4 * K * V / 256,
        "decode": 8 * K * V + 4 * K + itemsize * (2 * K + 2 * V),
    }
    if kind == "decode":
        return tokens * moved[kind] / COPY
    macs = {"forward": C * (3 * K + 2 * V) + 3 * K * V, "backward": C * (7 * K + 5 * V) + 7 * K * V}
    rate = MATRIX if case.precision == "fast" else F32
    return max(tokens * moved[kind] / COPY, 2 * tokens * macs[kind] / rate)


def inputs_of(case: Case, device: str) -> list[vkml.Tensor]:
    """Unit keys, ordinary decays, a state. A block of a few heads, repeated on the device; every head has a scale of
    its own in query, value and state, so that no head can stand for another."""
    rng = np.random.default_rng(0)
    heads = case.B * case.H
    block = max(n for n in (1, 2, 4, 8) if heads % n == 0 and n * case.T <= max(65536, case.T))

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    key = random(block, case.T, K)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    decay = -np.exp(rng.uniform(np.log(1e-3), np.log(1.6), (block, case.T, K)).astype(np.float32))
    beta = rng.uniform(0, 1, (block, case.T)).astype(np.float32)
    scales = vkml.tensor(1 + np.arange(heads, dtype=np.float32) / heads, device=device)

    def repeat(x: np.ndarray, dtype: str, scaled: bool = False) -> vkml.Tensor:
        t = vkml.tensor(x, device=device).to(dtype)
        t = t.unsqueeze(0).expand(heads // block, *x.shape)
        if scaled:
            t = t * scales.to(dtype).reshape(heads // block, block, *[1] * (x.ndim - 1))
        return t.contiguous().reshape(case.B, case.H, *x.shape[1:])

    kind = case.dtype
    return [
        repeat(random(block, case.T, K) * K**-0.5, kind, True),
        repeat(key, kind),
        repeat(random(block, case.T, V), kind, True),
        repeat(decay, "float32"),
        repeat(beta, "float32"),
        repeat(random(block, K, V), "float32", True),
    ]


def head(x: vkml.Tensor, b: int, h: int) -> np.ndarray:
    """One head as float64."""
    return vkml.narrow(vkml.narrow(x.detach(), 0, b, 1), 1, h, 1).contiguous().numpy().astype(np.float64)[0, 0]


def picked(case: Case) -> list[tuple[int, int]]:
    """The first head, the last, and two at random; fewer for long sequences."""
    rng = np.random.default_rng()
    some = [(int(rng.integers(case.B)), int(rng.integers(case.H))) for _ in range(2)]
    return sorted({(0, 0), (case.B - 1, case.H - 1), *(some if case.T <= 8192 else some[:1])})


def worst(got: vkml.Tensor, want: Any, heads: list[tuple[int, int]]) -> float:
    errors = []
    for i, (b, h) in enumerate(heads):
        expected = np.asarray(want[i])
        value = head(got, b, h)
        errors.append(np.linalg.norm(value - expected) / np.linalg.norm(expected))
    return float(np.max(errors)) if np.isfinite(errors).all() else float("nan")


def chosen(run: Callable[[], Any]) -> str:
    vkml.record_decisions()
    run()
    vkml.stop_recording_decisions()
    sites = ("kda.fast", "kda.fast_backward", "kda.path", "kda.segments")
    return ", ".join(sorted({d["chose"] for d in vkml.decisions() if d["site"] in sites and d["chose"]})) or "cpu"


def median_seconds(call: Callable[[], Any], wait: Callable[[], Any] = vkml.synchronize) -> float:
    """Warms up longer than other benches: the check before keeps the host busy, and the clock of the GPU falls."""
    (seconds,) = measure([Runner(call, wait)], warm_seconds=0.8)
    return seconds


def first(call: Callable[[], Any]) -> Any:
    """The first call compiles kernels: said before anything else, so that a long one is seen for what it is."""
    begin = time.perf_counter()
    out = call()
    vkml.synchronize()
    seconds = time.perf_counter() - begin
    if seconds > 2:
        print(f"  first call {seconds:.1f} s", flush=True)
    return out


def report(case: Case, seconds: float, least: float, errors: str, path: str) -> float:
    bar = f"  bar {case.bar:g} {'met' if 1e3 * seconds <= case.bar else 'MISSED'}" if case.bar else ""
    if case.kind == "decode":
        rate = least * COPY / seconds / 1e12
        bar = f"  {rate:.2f} TB/s" + (
            f"  bar {case.bar:g} {'met' if rate >= case.bar else 'MISSED'}" if case.bar else ""
        )
    floor_text = f"floor {1e3 * least:.3f} = {least / seconds:4.0%}"
    print(f"{case!s:50} {1e3 * seconds:9.3f} ms  {floor_text}{bar}  {errors}  [{path}]", flush=True)
    return seconds


def run_forward(case: Case, device: str, oracle: Reference) -> float:
    inputs = inputs_of(case, device)

    def call() -> Any:
        with vkml.no_grad():
            return vkml.chunk_kda(*inputs, retain_boundaries=case.boundaries, precision=case.precision)

    got, path = first(call), chosen(call)
    heads = picked(case)
    output, state = oracle.forward([[head(x, b, h) for x in inputs] for b, h in heads])
    errors = f"o {worst(got.output, output, heads):.1e} S {worst(got.final_state, state, heads):.1e}"
    if case.boundaries:
        last = vkml.select(got.boundaries, 0, got.boundaries.shape[0] - 1)
        before = oracle.states_before_last[64]
        errors += f" boundaries {worst(last, before, heads):.1e}"
    del got
    seconds = median_seconds(call)
    return report(case, seconds, floor(case, "forward", inputs[0].itemsize), errors, path)


def run_backward(case: Case, device: str, oracle: Reference) -> float:
    inputs = inputs_of(case, device)
    leaves = [x.detach().requires_grad_() for x in inputs]
    weight = inputs[2].flip(2).contiguous()

    def call() -> Any:
        out = vkml.chunk_kda(*leaves, precision=case.precision)
        return vkml.grad([out.output], leaves, [weight])

    got, path = first(call), chosen(call)
    heads = picked(case)[:2]
    slices = [[head(x, b, h) for x in (*inputs, weight)] for b, h in heads]
    wanted = oracle.backward(slices)
    errors = " ".join(f"{n} {worst(g, w, heads):.1e}" for n, g, w in zip(NAMES, got, wanted, strict=True))
    del got
    seconds = median_seconds(call)
    item = inputs[0].itemsize
    return report(case, seconds, floor(case, "forward", item) + floor(case, "backward", item), errors, path)


def run_decode(case: Case, device: str, oracle: Reference) -> float:
    inputs = inputs_of(case, device)
    o, s = first(lambda: vkml.kda_decode(*inputs))
    heads = picked(case)
    output, after = oracle.forward([[head(x, b, h) for x in inputs] for b, h in heads])
    errors = f"o {worst(o, output, heads):.1e} S {worst(s, after, heads):.1e}"
    state = inputs[5].clone()
    seconds = median_seconds(lambda: vkml.kda_decode(*inputs[:5], state, update_state=True))
    return report(case, seconds, floor(case, "decode", inputs[0].itemsize), errors, "decode")


def run_peers(ours: dict[str, float]) -> None:
    """flash-linear-attention on CUDA, for the cases that it has a call for."""
    import torch

    for name, make in kda_peer.CALLS.items():
        begin = time.perf_counter()
        call = make()
        call()
        torch.cuda.synchronize()
        first_seconds = time.perf_counter() - begin
        seconds = median_seconds(call, torch.cuda.synchronize)
        ratio = f"{seconds / ours[name]:.2f}x" if name in ours else "vkml not timed"
        print(
            f"flash-linear-attention {name:45} {1e3 * seconds:9.3f} ms  {ratio}  (first call {first_seconds:.0f} s)",
            flush=True,
        )


RUN = {"forward": run_forward, "backward": run_backward, "decode": run_decode}


def main() -> None:
    begin = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=str(vkml.get_default_device()))
    parts = ["forward", "backward", "decode", "few", "long", "peer"]
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--precision", nargs="+", choices=["fast", "strict"], default=["fast", "strict"])
    parser.add_argument("--small", action="store_true", help="sizes for a CPU or lavapipe")
    parser.add_argument("--seconds", type=float, default=230, help="no case begins later than this")
    options = parser.parse_args()
    oracle = Reference()
    print(
        f"device: {options.device} ({vkml.device_info(options.device)['name']}); float64 by {oracle.name}", flush=True
    )
    print(f"floors: {COPY / 1e12:g} TB/s, {MATRIX / 1e12:g} TFLOP/s fast, {F32 / 1e12:g} strict", flush=True)

    def late(case: Case) -> bool:
        passed = time.perf_counter() - begin
        if passed > options.seconds:
            print(f"{case!s:50} skipped: {passed:.0f} s have passed", flush=True)
        return passed > options.seconds

    cases = [c for c in (SMALL if options.small else CASES) if c.kind == "decode" or c.precision in options.precision]
    peer = "peer" in options.only and not options.small
    if peer and (reason := kda_peer.missing()):
        print(f"flash-linear-attention: {reason}", flush=True)
        peer = False
    if peer:
        print(f"flash-linear-attention compiled in {kda_peer.compile_all():.0f} s", flush=True)
    ours: dict[str, float] = {}
    for case in cases:
        if case.part not in options.only or late(case):
            continue
        try:
            ours[str(case)] = RUN[case.kind](case, options.device, oracle)
        except vkml.OutOfMemoryError as e:
            print(f"{case!s:50} {e}", flush=True)
    if peer:
        run_peers(ours)
    print(f"{time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()

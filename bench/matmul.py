"""python -m bench.matmul [--device vulkan:0] [--against torch:cuda] [--only bf16 gemv ...] [--largest FLOP]

Every matmul row of the targets: f32 in highest and high, medium, 16-bit, gemv, batched, tall and skinny, split K, fused
linear. One line each: the pipeline that ran, time, TFLOP/s or TB/s, the fraction of the floor (FMA rate for f32 in
highest, copy rate for gemv), the ratio to the peer in the same run, and the largest error of sampled outputs against
float64, in units of what the bound allows (f32: (K/32 + log2 K + 32) 2^-23 sum |a||b|; 16-bit: one rounding more).
Exits with 1 if an error is above 1 or a result is missing. Writes matmul.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import vkml
from bench.__main__ import default_largest, pick_device
from bench.cases import ROOT
from bench.measure import Floor, Runner, measure, measure_floor
from bench.peer import TorchPeer

EPS = {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclass(frozen=True)
class Product:
    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    dtype: str = "float32"
    precision: str = "highest"
    activation: str | None = None  # linear with bias and this, b is (out, in)
    bytes_bound: bool = False

    @property
    def flops(self) -> float:
        batch = max(math.prod(self.a[:-2]), math.prod(self.b[:-2]))
        n = self.b[-2] if self.activation else self.b[-1]
        return 2.0 * batch * self.a[-2] * self.a[-1] * n


def squares(name: str, sizes: tuple[int, ...], **more: Any) -> list[Product]:
    return [Product(f"{name} {n}", (n, n), (n, n), **more) for n in sizes]


CASES = [
    *squares("f32", (256, 512, 1024, 2048, 4096, 8192)),
    *squares("f32 odd", (1023, 4099)),
    *squares("f32 high", (1024, 2048, 4096, 8192), precision="high"),
    *squares("f32 high odd", (4099,), precision="high"),
    *squares("f32 medium", (2048, 4096, 8192), precision="medium"),
    *squares("bf16", (1024, 2048, 4096, 8192), dtype="bfloat16"),
    *squares("bf16 odd", (4099,), dtype="bfloat16"),
    *squares("f16", (1024, 2048, 4096, 8192), dtype="float16"),
    *(Product(f"gemv f32 {n}", (n, n), (n, 1), bytes_bound=True) for n in (4096, 16384)),
    *(Product(f"gemv bf16 {n}", (n, n), (n, 1), dtype="bfloat16", bytes_bound=True) for n in (4096, 16384)),
    Product("row f32 x W 16384", (1, 16384), (16384, 16384), bytes_bound=True),
    Product("linear f32 row 16384", (1, 16384), (16384, 16384), activation="none", bytes_bound=True),
    Product("linear bf16 row 16384", (1, 16384), (16384, 16384), "bfloat16", activation="none", bytes_bound=True),
    Product("split K f32", (512, 65536), (65536, 512)),
    Product("split K bf16", (512, 65536), (65536, 512), "bfloat16"),
    Product("batched f32 64 x 512", (64, 512, 512), (64, 512, 512)),
    Product("batched f32 1024 x 64", (1024, 64, 64), (1024, 64, 64)),
    Product("batched bf16 64 x 512", (64, 512, 512), (64, 512, 512), "bfloat16"),
    Product("tall f32", (65536, 256), (256, 256)),
    Product("skinny f32 64 rows", (64, 4096), (4096, 4096)),
    Product("skinny f32 16 rows", (16, 4096), (4096, 4096)),
    Product("skinny bf16 64 rows", (64, 4096), (4096, 4096), "bfloat16"),
    Product("narrow f32 64 columns", (16384, 4096), (4096, 64)),
    Product("outer f32 K 64", (8192, 64), (64, 8192)),
    *(Product(f"linear {a} f32 4096", (4096, 4096), (4096, 4096), activation=a) for a in ("none", "relu", "gelu")),
    *(Product(f"linear {a} bf16 4096", (4096, 4096), (4096, 4096), "bfloat16", activation=a) for a in ("none", "gelu")),
]  # fmt: skip


def draw(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Random numbers; a large array repeats a block of odd length."""
    block = np.random.default_rng(seed).standard_normal(min(math.prod(shape), (1 << 22) + 7)).astype(np.float32)
    return np.resize(block, math.prod(shape)).reshape(shape)


def held(x: np.ndarray, case: Product) -> np.ndarray:
    """What the kernel multiplies, in float64."""
    dtype = "bfloat16" if case.precision == "medium" else case.dtype
    if dtype == "float32":
        return x.astype(np.float64)
    return vkml.tensor(x, dtype=dtype).to(dtype="float32").numpy().astype(np.float64)


def worst_error(case: Product, a: np.ndarray, b: np.ndarray, bias: np.ndarray, got: np.ndarray) -> float:
    """Of whole sampled rows and columns, in units of the bound."""
    w = b.swapaxes(-1, -2) if case.activation else b
    rng = np.random.default_rng(5)
    batch = rng.integers(a.shape[0]) if a.ndim == 3 else None
    left, right, out = (x if batch is None else x[batch] for x in (a, w, got))
    rows = np.unique(np.append(rng.integers(left.shape[0], size=5), left.shape[0] - 1))
    columns = np.unique(np.append(rng.integers(right.shape[1], size=64), right.shape[1] - 1))
    x, y = held(left[rows], case), held(np.ascontiguousarray(right[:, columns]), case)
    expected, k = x @ y, x.shape[1]
    allowed = (k / 32 + math.log2(k) + 32) * 2.0**-23 * (np.abs(x) @ np.abs(y))
    if case.activation:
        extra = held(bias[columns], case)
        allowed = (allowed + 2.0**-22 * np.abs(extra)) * 1.2  # no activation here has a slope above 1.13
        expected = activated(expected + extra, case.activation)
    allowed = allowed + EPS[case.dtype] * np.abs(expected) + (2.0**-24 if case.dtype == "float16" else 1e-30)
    return float(np.max(np.abs(out[np.ix_(rows, columns)] - expected) / allowed))


def activated(x: np.ndarray, name: str) -> np.ndarray:
    if name == "relu":
        return np.maximum(x, 0)
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) if name == "gelu" else x


def peer_call(peer: TorchPeer, case: Product, arrays: tuple[np.ndarray, ...]) -> Callable[[], Any]:
    torch = peer.torch
    a, b, bias = (peer.tensor(x, case.dtype) for x in arrays)
    if not case.activation:
        return lambda: torch.matmul(a, b)
    after = {"none": lambda y: y, "relu": torch.relu, "gelu": torch.nn.functional.gelu}[case.activation]
    return lambda: after(torch.nn.functional.linear(a, b, bias))


def chosen(call: Callable[[], Any]) -> str:
    vkml.record_decisions(8)
    call()
    vkml.stop_recording_decisions()
    return [d for d in vkml.decisions() if d["site"] == "matmul.kernel"][-1]["chose"]


def run(case: Product, device: str, floor: Floor, peer: TorchPeer | None) -> dict[str, Any]:
    vkml.set_float32_matmul_precision(case.precision)
    n = case.b[-2] if case.activation else case.b[-1]
    arrays = (draw(case.a, 1), draw(case.b, 2), draw((n,), 3))
    a, b, bias = (vkml.tensor(x, dtype=case.dtype, device=device) for x in arrays)
    call: Callable[[], Any] = lambda: a @ b  # noqa: E731
    if case.activation:
        call = lambda: vkml.linear(a, b, bias, activation=case.activation)  # noqa: E731
    pipeline = chosen(call)
    error = worst_error(case, *arrays, call().to(dtype="float32").numpy())
    runners = [Runner(call, lambda: vkml.synchronize(device))]
    if peer:
        runners.append(Runner(peer_call(peer, case, arrays), peer.wait))
    seconds = measure(runners)
    size = 4 if case.dtype == "float32" else 2
    moved = float(size * (math.prod(case.a) + math.prod(case.b) + case.flops / 2 / case.a[-1]))
    exact_work = case.flops if case.dtype == "float32" and case.precision == "highest" else 0.0
    return asdict(case) | {
        "pipeline": pipeline,
        "seconds": seconds[0],
        "tflops": case.flops / seconds[0] / 1e12,
        "tbytes": moved / seconds[0] / 1e12,
        "of_floor": floor.share(seconds[0], moved, exact_work),
        "ratio": seconds[1] / seconds[0] if peer else None,
        "error": error,
    }


def line(r: dict[str, Any]) -> str:
    rate = f"{r['tbytes']:.2f} TB/s" if r["bytes_bound"] else f"{r['tflops']:.2f} TFLOP/s"
    ratio = f"{r['ratio']:.2f}x" if r["ratio"] else "-"
    return (
        f"{r['name']:24}{r['pipeline']:22}{r['seconds'] * 1e6:11.1f} us {rate:>16}{r['of_floor']:7.0%} {ratio:>7}"
        f"  error {r['error']:.3f}"
    )


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.matmul", description=__doc__)
    parser.formatter_class = argparse.RawTextHelpFormatter
    parser.add_argument("--device")
    parser.add_argument("--against", choices=["torch", "torch:cuda"])
    parser.add_argument("--only", nargs="*", default=[""], help="only cases whose name holds one of these")
    parser.add_argument("--largest", type=float, help="leave out cases of more FLOP")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results")
    given = parser.parse_args()
    device = pick_device(given.device)
    peer = TorchPeer(given.against) if given.against else None
    floor = measure_floor(device)
    print(f"# {device}: copy {floor.bytes_per_second / 1e12:.2f} TB/s, FMA {floor.flops_per_second / 1e12:.2f} TFLOP/s")
    print(
        f"# peer: {peer.description if peer else 'none'}; ratio above 1: vkml is faster; errors in units of the bound"
    )
    largest = given.largest or default_largest(device)
    results, failed = [], False
    for case in CASES:
        if not any(word in case.name for word in given.only) or case.flops > largest:
            continue
        try:
            results.append(run(case, device, floor, peer))
            print(line(results[-1]), flush=True)
            failed |= not results[-1]["error"] <= 1
        except Exception as problem:  # one broken case must not hide the others
            print(f"{case.name:24}FAILED {type(problem).__name__}: {problem}", flush=True)
            failed = True
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "matmul.json").write_text(json.dumps({"device": device, "results": results}, indent=1) + "\n")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())

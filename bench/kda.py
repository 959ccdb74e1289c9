"""Times Kimi Delta Attention and checks what it timed.

    python -m bench.kda [--device vulkan:0] [--small] [--dtype bfloat16] [--precision fast strict]

Each line: time, fraction of the larger floor (bytes / copy rate, FLOP / matrix rate of an H200), errors of one head
against float64 on the CPU, the kernels that ran, and the ratio to flash-linear-attention in the same process where it
can be imported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import vkml

from .measure import Runner, measure

COPY, MATRIX, F32 = 4.0e12, 230e12, 44.6e12  # bytes and FLOP per second of an H200 through Vulkan


def floor(kind: str, B: int, H: int, T: int, K: int, V: int, itemsize: int, fast: bool) -> float:
    """Seconds, from kda.md's counts per token and head."""
    tokens, C = B * H * T, (64 + 16) / 2
    moved = {
        "forward": itemsize * (2 * K + 2 * V) + 4 * K + 4,
        "backward": itemsize * (4 * K + 3 * V) + 8 * K + 8 + 4 * K * V / 256,
    }
    macs = {"forward": C * (3 * K + 2 * V) + 3 * K * V, "backward": C * (7 * K + 5 * V) + 7 * K * V}
    return max(tokens * moved[kind] / COPY, 2 * tokens * macs[kind] / (MATRIX if fast else F32))


def arrays(B: int, H: int, T: int, K: int, V: int, seed: int = 0) -> list[np.ndarray]:
    """Unit keys, ordinary decays, a state; the heads repeat a block of eight."""
    rng = np.random.default_rng(seed)
    block = min(B * H, 8)

    def repeat(x: np.ndarray) -> np.ndarray:
        return np.resize(x.astype(np.float32), (B, H, *x.shape[1:]))

    key = rng.normal(size=(block, T, K)).astype(np.float32)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    query = rng.normal(size=(block, T, K)) * K**-0.5
    g = -np.exp(rng.uniform(np.log(1e-3), np.log(1.6), (block, T, K)))
    return [
        repeat(x)
        for x in (
            query,
            key,
            rng.normal(size=(block, T, V)),
            g,
            rng.uniform(0, 1, (block, T)),
            rng.normal(size=(block, K, V)),
        )
    ]


def rms(got: vkml.Tensor, want: np.ndarray) -> float:
    return float(np.linalg.norm(got.numpy().astype(np.float64) - want) / np.linalg.norm(want))


def one_head(tensors: list[vkml.Tensor]) -> list[vkml.Tensor]:
    """The first head of everything, in float64 on the CPU."""
    return [
        vkml.narrow(vkml.narrow(t.detach(), 0, 0, 1), 1, 0, 1).contiguous().to("cpu").to("float64") for t in tensors
    ]


def peer(values: list[np.ndarray], dtype: str, backward: bool) -> Runner | None:
    """flash-linear-attention on CUDA, in its own [B, T, H, K] layout."""
    try:
        import torch
        from fla.ops.kda import chunk_kda
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    kind = getattr(torch, dtype)
    q, k, v, g = (torch.from_numpy(np.ascontiguousarray(x.swapaxes(1, 2))).cuda() for x in values[:4])
    beta, state = (
        torch.from_numpy(np.ascontiguousarray(values[4].swapaxes(1, 2))).cuda(),
        torch.from_numpy(values[5]).cuda(),
    )
    inputs = [x.to(kind).requires_grad_(backward) for x in (q, k, v)] + [
        g.requires_grad_(backward),
        beta.requires_grad_(backward),
    ]
    grad = torch.randn_like(inputs[2])

    def call() -> object:
        out, _ = chunk_kda(*inputs, initial_state=state, output_final_state=True)
        return torch.autograd.grad(out, inputs, grad) if backward else out

    return Runner(call, torch.cuda.synchronize)


def chosen(run: Callable[[], Any]) -> str:
    vkml.record_decisions()
    run()
    vkml.stop_recording_decisions()
    return (
        ", ".join(
            sorted(
                {
                    d["chose"]
                    for d in vkml.decisions()
                    if d["site"] in ("kda.fast", "kda.path") and d["chose"] != "strict"
                }
            )
        )
        or "cpu"
    )


def report(label: str, seconds: list[float], least: float, errors: str, path: str) -> None:
    other = f"  {seconds[1] / seconds[0]:.2f}x the peer ({1e3 * seconds[1]:.3f} ms)" if len(seconds) > 1 else ""
    print(
        f"{label:44} {1e3 * seconds[0]:9.3f} ms  {least / seconds[0]:4.0%} of the floor  {errors}  [{path}]{other}",
        flush=True,
    )


def sequence(B: int, H: int, T: int, dtype: str, precision: str, device: str) -> None:
    K = V = 128
    values = arrays(B, H, T, K, V)
    kinds = [dtype] * 3 + ["float32"] * 3
    inputs = [vkml.tensor(x, dtype=kind, device=device) for x, kind in zip(values, kinds, strict=True)]
    weight = vkml.tensor(values[2][..., ::-1].copy(), dtype=dtype, device=device)

    def forward() -> Any:
        with vkml.no_grad():
            return vkml.chunk_kda(*inputs, precision=precision)

    leaves = [x.detach().requires_grad_() for x in inputs]

    def both() -> Any:
        out = vkml.chunk_kda(*leaves, precision=precision)
        return vkml.grad([out.output], leaves, [weight])

    head = one_head(inputs)
    want = vkml.chunk_kda(*head)
    got = forward()
    pairs = (("o", got.output, want.output), ("S", got.final_state, want.final_state))
    errors = " ".join(f"{n} {rms(one_head([x])[0], w.numpy()):.1e}" for n, x, w in pairs)
    name = f"B{B} T{T} H{H} {dtype} {precision}"
    item, fast = inputs[0].itemsize, precision == "fast"
    path = chosen(forward)
    runners = [Runner(forward, vkml.synchronize), *filter(None, [peer(values, dtype, False)])]
    report(f"forward {name}", measure(runners), floor("forward", B, H, T, K, V, item, fast), errors, path)
    wanted = vkml.chunk_kda_backward(*head, one_head([weight])[0])
    errors = " ".join(
        f"{n} {rms(one_head([g])[0], w.numpy()):.1e}"
        for n, g, w in zip(("dq", "dk", "dv", "dg", "db", "dS"), both(), wanted, strict=True)
    )
    least = floor("forward", B, H, T, K, V, item, fast) + floor("backward", B, H, T, K, V, item, fast)
    runners = [Runner(both, vkml.synchronize), *filter(None, [peer(values, dtype, True)])]
    report(f"forward+backward {name}", measure(runners), least, errors, chosen(both))


def decode(B: int, H: int, dtype: str, device: str) -> None:
    K = V = 128
    values = arrays(B, H, 1, K, V)
    kinds = [dtype] * 3 + ["float32"] * 3
    inputs = [vkml.tensor(x, dtype=kind, device=device) for x, kind in zip(values, kinds, strict=True)]
    o, s = vkml.kda_decode(*inputs)
    want = vkml.kda_decode(*one_head(inputs))
    errors = " ".join(f"{n} {rms(one_head([x])[0], w.numpy()):.1e}" for n, x, w in zip("oS", (o, s), want, strict=True))
    state = inputs[5].clone()
    (seconds,) = measure([Runner(lambda: vkml.kda_decode(*inputs[:5], state, update_state=True), vkml.synchronize)])
    moved = B * H * (8 * K * V + 4 * K + inputs[0].itemsize * (2 * K + 2 * V))
    report(
        f"decode B{B} H{H} {dtype}", [seconds], moved / COPY, f"{errors}  {moved / seconds / 1e12:.2f} TB/s", "decode"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=str(vkml.get_default_device()))
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--precision", nargs="+", default=["fast", "strict"])
    parser.add_argument("--small", action="store_true", help="sizes for a CPU or lavapipe")
    options = parser.parse_args()
    shapes = [(1, 4, 512)] if options.small else [(1, 32, 8192), (1, 32, 32768), (4, 32, 8192)]
    print(f"device: {options.device} ({vkml.device_info(options.device)['name']})")
    for dtype in options.dtype:
        for precision in options.precision:
            for shape in shapes:
                sequence(*shape, dtype, precision, options.device)
        decode(*((4, 4) if options.small else (64, 32)), dtype, options.device)


if __name__ == "__main__":
    main()

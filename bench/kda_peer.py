"""flash-linear-attention beside chunk_kda and kda_decode, on CUDA.

    python -m bench.kda_peer PART PARTS     # compiles every PARTS-th tuning candidate of its kernels, from PART on

Its kernels try dozens of configurations each when first called and compile them one by one, for minutes. So as many
processes as there are processors first compile a share each into Triton's cache on disk; what is timed afterwards then
tunes itself as always, over all candidates.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

K = V = 128
B, T, H = 1, 8192, 32
DECODED = 64  # sequences of a decode step
LONGEST_COMPILATION = 150  # seconds


def missing() -> str:
    """Why the peer cannot be measured here, or nothing."""
    try:
        import torch
        from fla.ops import kda  # noqa: F401
    except ImportError as e:
        return f"not here ({e})"
    return "" if torch.cuda.is_available() else "no CUDA"


def arguments(batch: int, tokens: int) -> list[Any]:
    """query, key, value [B, T, H, K] in bfloat16; log_decay, beta and the state [B, H, K, V] in float32."""
    import torch

    shape = (batch, tokens, H, K)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    k = torch.nn.functional.normalize(k.float(), dim=-1).to(torch.bfloat16)
    g = -torch.rand(shape, device="cuda").add_(1e-3)
    beta = torch.rand(shape[:3], device="cuda")
    return [q, k, v, g, beta, torch.randn((batch, H, K, V), device="cuda")]


def forward() -> Callable[[], Any]:
    from fla.ops.kda import chunk_kda

    *inputs, state = arguments(B, T)
    return lambda: chunk_kda(*inputs, initial_state=state, output_final_state=True)


def forward_and_backward() -> Callable[[], Any]:
    import torch
    from fla.ops.kda import chunk_kda

    *inputs, state = arguments(B, T)
    inputs = [x.requires_grad_() for x in inputs]
    grad = torch.randn_like(inputs[2])

    def call() -> Any:
        out, _ = chunk_kda(*inputs, initial_state=state, output_final_state=True)
        return torch.autograd.grad(out, inputs, grad)

    return call


def decode() -> Callable[[], Any]:
    from fla.ops.kda import fused_recurrent_kda

    *inputs, state = arguments(DECODED, 1)
    return lambda: fused_recurrent_kda(*inputs, initial_state=state, output_final_state=True)


# By the names of the cases of bench.kda.
CALLS = {
    "forward B1 T8192 H32 bfloat16 fast": forward,
    "forward+backward B1 T8192 H32 bfloat16 fast": forward_and_backward,
    "decode B64 H32 bfloat16": decode,
}


def compile_part(part: int, parts: int) -> None:
    import triton.testing
    from triton.runtime.autotuner import Autotuner

    prune = Autotuner.prune_configs

    def share(self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        configs = prune(self, *args, **kwargs)
        return configs[part::parts] or configs[:1]

    def run_once(call: Callable[[], Any], *args: Any, **kwargs: Any) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    Autotuner.prune_configs = share
    triton.testing.do_bench = run_once
    for make in CALLS.values():
        make()()


def compile_all() -> float:
    """Fills Triton's cache; the seconds that it took. A process that takes too long is stopped: then tuning compiles
    what is left."""
    begin, parts = time.perf_counter(), os.cpu_count() or 1
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.kda_peer", str(part), str(parts)],
            stdout=subprocess.DEVNULL,
            stderr=None if part == 0 else subprocess.DEVNULL,
        )
        for part in range(parts)
    ]
    for worker in workers:
        try:
            worker.wait(max(1.0, LONGEST_COMPILATION - (time.perf_counter() - begin)))
        except subprocess.TimeoutExpired:
            worker.kill()
    return time.perf_counter() - begin


if __name__ == "__main__":
    compile_part(int(sys.argv[1]), int(sys.argv[2]))

"""One case: set up, checked, timed."""

from __future__ import annotations

from typing import Any

import numpy as np

import vkml
from bench.cases import Case, random_numbers
from bench.measure import Floor, Runner, kernel_seconds, measure
from bench.peer import TorchPeer

LARGEST_CHECK = 1 << 25  # elements the NumPy reference is asked for


def outputs_of(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def tolerance(dtype: str, flops: float | None) -> float:
    """Relative to the largest result: sums in another order, and one rounding of a 16-bit result."""
    return {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}.get(dtype, 0.0) * (8 if flops else 1)


def agreement(got: list[np.ndarray], expected: list[np.ndarray], allowed: float, least_scale: float) -> str:
    """Errors count against the largest result, or against `least_scale` where a result cancels from larger terms."""
    for y, e in zip(got, expected, strict=True):
        if y.shape != e.shape:
            return f"WRONG shape {y.shape}, {e.shape}"
        scale = np.abs(e[np.isfinite(e)]).max(initial=least_scale) if e.dtype.kind == "f" else 1.0
        error = np.abs(y - e).max(initial=0.0) if e.dtype.kind == "f" else np.count_nonzero(y != e)
        if not error <= allowed * scale:
            return f"WRONG by {error:.2g}"
    return "ok"


class Run:
    """One case on one device, set up and ready to be timed."""

    def __init__(self, case: Case, device: str, peer: TorchPeer | None) -> None:
        self.case, self.device, self.peer = case, device, peer
        self.arrays = case.arrays()
        bench, op = case.bench, case.declared.op
        from op_checks import tensors

        self.inputs = tensors(self.arrays, bench.dtype, device, bench.backward)
        ys = outputs_of(op(*self.inputs, **bench.kwargs))[: bench.outputs]
        self.bytes = case.bytes(self.arrays, ys)
        rng = np.random.default_rng(2)
        self.seeds = [random_numbers(rng, tuple(y.shape)) for y in ys] if bench.backward else []
        self.runner = Runner(self.call_vkml(ys), lambda: vkml.synchronize(device))
        self.peer_runner = self.make_peer()

    def call_vkml(self, ys: list[Any]) -> Any:
        from op_checks import tensors

        op, kwargs, inputs = self.case.declared.op, self.case.bench.kwargs, self.inputs
        if not self.case.bench.backward:
            return lambda: op(*inputs, **kwargs)
        wanted = [x for x in inputs if x.requires_grad]
        seeds = tensors(self.seeds, self.case.bench.dtype, self.device)
        return lambda: vkml.grad(ys, wanted, seeds, retain_graph=True)

    def make_peer(self) -> Runner | None:
        function = self.peer.function(self.case) if self.peer else None
        if not function:
            return None
        peer, bench = self.peer, self.case.bench
        xs = [peer.tensor(a, bench.dtype, bench.backward) for a in self.arrays]
        if not bench.backward:
            return Runner(lambda: function(*xs, **bench.kwargs), peer.wait)
        ys = outputs_of(function(*xs, **bench.kwargs))[: bench.outputs]
        wanted = [x for x in xs if x.requires_grad]
        seeds = [peer.tensor(g, bench.dtype) for g in self.seeds]
        return Runner(lambda: peer.grad(ys, wanted, seeds), peer.wait)

    def check(self) -> str:
        """Against the peer, else against NumPy where that is affordable."""
        from helpers import to_numpy
        from op_checks import held

        bench = self.case.bench
        count = None if bench.backward else bench.outputs  # of results; gradients are checked all
        got = [to_numpy(y).astype(np.float64) for y in outputs_of(self.runner.call())[:count]]
        if self.peer_runner and not bench.random:
            results = outputs_of(self.peer_runner.call())[:count]
            expected = [y.detach().double().cpu().numpy() for y in results]
        elif bench.backward or sum(a.size for a in self.arrays) > LARGEST_CHECK:
            return "unchecked"
        else:
            with np.errstate(all="ignore"):
                reference = self.case.declared.reference(*held(self.arrays, bench.dtype), **bench.kwargs)
            expected = [np.asarray(e, np.float64) for e in outputs_of(reference)[:count]]
        return agreement(got, expected, tolerance(bench.dtype, bench.flops), bench.scale)


def result_of(case: Case, device: str, floor: Floor, peer: TorchPeer | None) -> dict[str, Any]:
    run = Run(case, device, peer)
    check = run.check()
    seconds = measure([run.runner, run.peer_runner] if run.peer_runner else [run.runner])
    bench = case.bench
    return {
        "case": case.label,
        "shape": case.shape,
        "dtype": bench.dtype,
        "seconds": seconds[0],
        "kernel_seconds": kernel_seconds(run.runner.call, device),
        "bytes": run.bytes,
        "flops": bench.flops,
        "gb_per_s": run.bytes / seconds[0] / 1e9,
        "gflop_per_s": bench.flops / seconds[0] / 1e9 if bench.flops else None,
        "of_floor": floor.share(seconds[0], run.bytes, bench.flops),
        "peer_seconds": seconds[1] if run.peer_runner else None,
        "peer_ratio": seconds[1] / seconds[0] if run.peer_runner else None,
        "check": check,
    }

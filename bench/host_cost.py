"""Host cost of a small operator (one-element add), recording only: python -m bench.host_cost [--device vulkan:0]

Times windows of seven operators between two waits, too few to be submitted, so the device's own time does not count.
The C++ figure comes from build/release/bench_host_cost. Exits with 1 above the bars: 2.5 us from C++, 1 us more from
Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import vkml
from bench.cases import ROOT

CPP_BAR_US, PYTHON_BAR_US = 2.5, 1.0
WINDOW, WINDOWS = 7, 3000


def per_call(device: str, call: Callable[[], object]) -> float:
    """Median microseconds."""
    windows = []
    for _ in range(WINDOWS):
        vkml.synchronize(device)
        begin = time.perf_counter_ns()
        for _ in range(WINDOW):
            call()
        windows.append((time.perf_counter_ns() - begin) / 1e3 / WINDOW)
    return statistics.median(windows)


def from_python(device: str) -> dict[str, float]:
    a, b = (vkml.full((1,), v, device=device) for v in (1.5, 0.25))
    leaf = vkml.full((1,), 1.5, device=device).requires_grad_()
    empty = per_call(device, lambda: None)
    return {
        "add_us": per_call(device, lambda: a + b) - empty,
        "add_with_autograd_us": per_call(device, lambda: leaf + b) - empty,
    }


def from_cpp(program: Path, device: str) -> dict[str, float]:
    done = subprocess.run([program, device], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.host_cost", None, __doc__)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bench_host_cost")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    given = parser.parse_args()
    cpp, python = from_cpp(given.program, given.device), from_python(given.device)
    print(f"{given.device}: one-element add, recording only (median of {WINDOWS} windows of {WINDOW})")
    for name in python:
        print(f"  {name:22} C++ {cpp[name]:.2f}   Python {python[name]:.2f}")
    print(f"  bars: C++ {CPP_BAR_US}, Python {PYTHON_BAR_US} more")
    if given.out:
        given.out.write_text(json.dumps({"device": given.device, "cpp": cpp, "python": python}, indent=1) + "\n")
    ok = cpp["add_us"] <= CPP_BAR_US and python["add_us"] - cpp["add_us"] <= PYTHON_BAR_US
    print("within the bars" if ok else "ABOVE THE BARS")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

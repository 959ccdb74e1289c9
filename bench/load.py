"""Time and peak host memory of loading a large safetensors file, beside the safetensors library.

    python -m bench.load [--megabytes 1000] [--file weights.safetensors]

Each way of loading runs in a process of its own, several times, on a file that lies in the page cache. `touch` also
reads every cache line once: a mapped file costs nothing before.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import vkml

CHILD = """
import json, sys, time
import numpy as np
path, way, touch = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
if way.startswith("vkml"):
    import vkml
    load = lambda: vkml.load(path, device="cpu", use_mmap=way == "vkml mapped").tensors
    view = lambda t: np.asarray(t)
else:
    import safetensors.numpy, safetensors.torch
    load = lambda: (safetensors.torch if way == "safetensors.torch" else safetensors.numpy).load_file(path)
    view = lambda t: t.numpy() if way == "safetensors.torch" else t
def status(name):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(name)) / 1024
before, begin = status("VmRSS"), time.perf_counter()
tensors = load()
if touch:
    total = sum(int(view(t).reshape(-1).view(np.uint8)[::64].sum()) for t in tensors.values())
print(json.dumps({"ms": 1e3 * (time.perf_counter() - begin), "peak_mb": status("VmHWM") - before}))
"""
WAYS = ("vkml mapped", "vkml read", "safetensors.torch", "safetensors.numpy")


def write(path: Path, megabytes: int) -> None:
    rng = np.random.default_rng(0)
    sizes = {f"layer{i}": 4_000_000 for i in range(megabytes // 16)}
    vkml.save(path, {name: rng.standard_normal(n, dtype=np.float32) for name, n in sizes.items()})


def measure(path: Path, touch: bool, repeats: int) -> dict[str, dict[str, float]]:
    """Way -> medians. The ways take turns, so that they share what else the machine does."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(repeats):
        for way, found in runs.items():
            command = [sys.executable, "-c", CHILD, str(path), way, str(int(touch))]
            found.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return {way: {k: statistics.median(r[k] for r in found) for k in found[0]} for way, found in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--file", type=Path, help="an existing file instead of random numbers")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "large.safetensors"
        if not options.file:
            write(path, options.megabytes)
        path.read_bytes()  # into the page cache
        print(f"{path.stat().st_size / 1e6:.0f} MB; median of {options.repeats}")
        for touch in (False, True):
            for way, found in measure(path, touch, options.repeats).items():
                what = "load and touch" if touch else "load"
                print(f"{way:<18} {what:<15} {found['ms']:>9.1f} ms {found['peak_mb']:>8.0f} MiB at most")


if __name__ == "__main__":
    main()

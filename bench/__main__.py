"""python -m bench [--device cpu|vulkan|vulkan:0] [--against torch|torch:cuda] [--only softmax ...]

Prints one line per case of the operator table: median time, what the device's own clock says of the kernels alone,
achieved GB/s or GFLOP/s, the fraction of the floor that was measured on the device at the start (a copy that moves as
many bytes, peak FMA), the ratio to the peer timed in turn in the same process (above 1: vkml is faster), and whether
the results agree. Writes bench-results/<device>.json and .md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import vkml
from bench import report
from bench.cases import ROOT, Case, declared_cases
from bench.measure import Floor, device_type, measure_floor
from bench.peer import TorchPeer
from bench.run import result_of


def pick_device(wanted: str | None) -> str:
    """The best usable device unless one is named."""
    if wanted:
        return str(vkml.device(wanted))
    return next(str(d.device) for d in vkml.devices() if d.usable)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench", None, __doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", help="cpu, vulkan or vulkan:N (default: the best there is)")
    parser.add_argument("--against", choices=["torch", "torch:cuda"], help="a peer, timed in the same process")
    parser.add_argument("--only", nargs="*", default=[""], help="only cases whose name holds one of these")
    parser.add_argument("--largest", type=float, help="leave out cases above this many bytes or FLOP")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results", help="where the results go")
    return parser.parse_args()


def affordable(case: Case, largest: float) -> bool:
    elements = sum(float(np.prod(s)) for s in case.bench.shapes)
    return max(8 * elements, case.bench.flops or 0) <= largest


def default_largest(device: str) -> float:
    """Cases made for a GPU would take minutes on a CPU."""
    if device_type(device) != "cpu":
        return float("inf")
    return 4e9 if device == "cpu" else 3e8


def run_cases(
    device: str, floor: Floor, peer: TorchPeer | None, only: list[str], largest: float
) -> list[dict[str, Any]]:
    print(report.line(report.COLUMNS))
    results, left_out = [], 0
    for case in declared_cases(only):
        if not affordable(case, largest):
            left_out += 1
            continue
        try:
            result = result_of(case, device, floor, peer)
        except Exception as problem:  # one broken operator must not hide the others
            text = f"{type(problem).__name__}: {problem}"
            result = {"case": case.label, "shape": case.shape, "dtype": case.bench.dtype, "error": text, "check": "-"}
        results.append(result)
        print(report.line(report.row(result)), flush=True)
    if left_out:
        print(f"{left_out} cases above {largest:.0e} bytes or FLOP left out on this device (--largest)")
    return results


def main() -> int:
    given = options()
    device = pick_device(given.device)
    peer = TorchPeer(given.against) if given.against else None
    floor = measure_floor(device)
    name = next(d.name for d in vkml.devices() if str(d.device) == device)
    head = report.header(device, name, floor, peer.description if peer else "")
    print("\n".join(filter(None, head)), flush=True)
    results = run_cases(device, floor, peer, given.only, given.largest or default_largest(device))
    facts = {"device": device, "name": name, "floor": vars(floor), "results": results}
    stem = report.write(given.out, facts | {"peer": peer.description if peer else None}, head)
    print(f"wrote {stem}.json and {stem}.md")
    wrong = [r for r in results if r.get("error") or r["check"].startswith("WRONG")]
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main())

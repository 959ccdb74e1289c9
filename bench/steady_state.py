"""2,000 training steps in which nothing may grow after step 10: python -m bench.steady_state [--device vulkan:0]"""

from __future__ import annotations

import argparse
import sys
import time

from bench.cases import ROOT

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "runtime")]

from training import train  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.steady_state", None, __doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=2000)
    given = parser.parse_args()
    begin = time.perf_counter()
    settled, final, losses = train(given.device, given.steps)
    took = time.perf_counter() - begin
    print(f"{given.device}: {given.steps} steps in {took:.1f} s, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    for name, value in settled.items():
        print(f"  {name:20} after step 10: {value:>12}   at the end: {final[name]:>12}")
    print("flat" if settled == final else "NOT FLAT")
    return 0 if settled == final else 1


if __name__ == "__main__":
    sys.exit(main())

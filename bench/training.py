"""A training step of a small MLP beside PyTorch: python -m bench.training [--device vulkan:0] [--against torch:cuda]

784-256-128-10, batch 64, cross entropy, Adam. Three ways to run it: eager, through `vkml.capture` (the step recorded
once and replayed), and the peer's eager mode. Medians of samples taken in turn; the losses of all three after the same
number of steps from the same weights must agree. Also the seconds from `import vkml` to the first result in a new
process, with the pipeline cache as the run before left it. Exits with 1 if losses differ.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import vkml
from bench.__main__ import pick_device
from bench.measure import Runner, measure
from bench.peer import TorchPeer

WIDTHS = (784, 256, 128, 10)
BATCH = 64
CHECKED_STEPS = 20
FIRST_RESULT = """
import time
begin = time.perf_counter()
import vkml
x = vkml.rand(64, 64, device={device!r})
(x @ x).sum().item()
print(time.perf_counter() - begin)
"""


def weights(rng: np.random.Generator) -> list[np.ndarray]:
    """Weight and bias of each layer, as torch.nn.Linear draws them."""
    out = []
    for fan_in, fan_out in itertools.pairwise(WIDTHS):
        bound = fan_in**-0.5
        for shape in ((fan_out, fan_in), (fan_out,)):
            out.append(rng.uniform(-bound, bound, shape).astype(np.float32))
    return out


class Step:
    """One training step in `library` (vkml or torch) on `device`; the loss of the last one stays on the device."""

    def __init__(
        self, library: Any, device: str, start: list[np.ndarray], data: np.ndarray, labels: np.ndarray
    ) -> None:
        nn = library.nn
        layers: list[Any] = []
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(WIDTHS)):
            layers += [nn.ReLU()] * (i > 0) + [nn.Linear(fan_in, fan_out)]
        self.model = nn.Sequential(*layers).to(device)
        make = library.from_numpy if hasattr(library, "from_numpy") else library.tensor
        with library.no_grad():
            for parameter, values in zip(self.model.parameters(), start, strict=True):
                parameter.copy_(make(values).to(device))
        self.data, self.labels = make(data).to(device), make(labels).to(device)
        self.loss_of = nn.CrossEntropyLoss()
        self.optimizer = library.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss: Any = None

    def __call__(self) -> None:
        loss = self.loss_of(self.model(self.data), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss = loss

    def loss_after(self, steps: int, call: Any = None) -> float:
        for _ in range(steps):
            (call or self)()
        return float(self.loss.item())


def first_result(device: str) -> float:
    """Seconds from the import to the first result, the better of two processes (the first fills caches)."""
    code = FIRST_RESULT.format(device=device)
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(r.stdout) for r in runs[1:])


def compare(device: str, peer: TorchPeer | None) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    given = (weights(rng), rng.random((BATCH, WIDTHS[0]), np.float32), rng.integers(0, WIDTHS[-1], BATCH))
    eager, recorded = Step(vkml, device, *given), Step(vkml, device, *given)
    recorded()  # optimizer state exists from here on
    capture = vkml.capture(recorded, device)
    losses = {
        "eager": eager.loss_after(CHECKED_STEPS),
        "capture": recorded.loss_after(CHECKED_STEPS - 2, capture.replay),
    }
    runners = [Runner(f, lambda: vkml.synchronize(device)) for f in (eager, capture.replay)]
    if peer:
        theirs = Step(peer.torch, peer.device, *given)
        losses["peer"] = theirs.loss_after(CHECKED_STEPS)
        runners.append(Runner(theirs, peer.wait))
    seconds = dict(zip(losses, measure(runners), strict=True))
    return {"losses": losses, "seconds": seconds, "commands": len(capture)}


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m bench.training", None, __doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device")
    parser.add_argument("--against", choices=["torch", "torch:cuda"])
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    given = parser.parse_args()
    device = pick_device(given.device)
    begin = time.perf_counter()
    result = compare(device, TorchPeer(given.against) if given.against else None)
    seconds, losses = result["seconds"], result["losses"]
    print(f"{device}: MLP {'-'.join(map(str, WIDTHS))}, batch {BATCH}, Adam; {result['commands']} commands recorded")
    for name, value in seconds.items():
        ratio = f"   {seconds['peer'] / value:5.2f}x" if "peer" in seconds else ""
        print(f"  {name:8} {value * 1e6:8.1f} us a step{ratio}   loss after {CHECKED_STEPS} steps {losses[name]:.6f}")
    result["first_result_seconds"] = first_result(device)
    print(
        f"  import to first result {result['first_result_seconds']:.3f} s ({time.perf_counter() - begin:.0f} s in all)"
    )
    if given.out:
        given.out.write_text(json.dumps({"device": device, **result}, indent=1) + "\n")
    spread = max(losses.values()) - min(losses.values())
    print("losses agree" if spread <= 1e-4 * max(losses.values()) else f"LOSSES DIFFER by {spread:.2g}")
    return 0 if spread <= 1e-4 * max(losses.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

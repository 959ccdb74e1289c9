"""examples/kda_language_model.py at a small size: it learns, saves, goes on from what it saved, writes, and draws."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(tmp_path: Path, device: str, steps: int) -> str:
    command = [sys.executable, ROOT / "examples" / "kda_language_model.py", "--device", device, "--steps", str(steps)]
    sizes = ["--epoch", "8", "--batch", "4", "--length", "48", "--width", "32", "--heads", "2", "--rate", "1e-2"]
    files = ["--checkpoint", tmp_path / "model.safetensors", "--figure", tmp_path / "loss.png", "--characters", "12"]
    path = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*command, *sizes, *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def losses(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"held-out loss:? (\d+\.\d+)", text)]


def test_learns_saves_and_goes_on(tmp_path, device):
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    first = run(tmp_path, device, 16)
    before, *epochs = losses(first)
    assert len(epochs) == 3 and epochs[-1] < before - 0.3, first  # two epochs, and the last line
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert "The " in first and "ms per character" in first
    second = run(tmp_path, device, 24)
    assert "going on from" in second and "step 16" in second
    going_on, *more = losses(second)
    assert going_on == pytest.approx(epochs[-1], abs=1e-4) and more[-1] < going_on, second

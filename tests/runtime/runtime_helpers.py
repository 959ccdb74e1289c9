"""Python in a process of its own, for what a process does only once: import, fork, exit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_python(code: str, env: dict[str, str] | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs the code with vkml on the path; fails unless it exits with 0."""
    full = os.environ | {"PYTHONPATH": f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"} | (env or {})
    prologue = f"TESTS = {str(ROOT / 'tests')!r}\n"
    command = [sys.executable, "-c", prologue + textwrap.dedent(code)]
    done = subprocess.run(command, env=full, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done

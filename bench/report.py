"""What the results look like: lines on the terminal, JSON, Markdown."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import vkml
from bench.measure import Floor

COLUMNS = ("case", "shape", "dtype", "time", "kernels", "rate", "of floor", "peer", "check")
WIDTHS = (34, 26, 9, 11, 11, 16, 9, 7, 10)


def line(cells: tuple[str, ...]) -> str:
    return "".join(c.ljust(w - 1) + " " for c, w in zip(cells, WIDTHS, strict=True)).rstrip()


def header(device: str, name: str, floor: Floor, peer: str) -> list[str]:
    copy, fma = floor.bytes_per_second / 1e9, floor.flops_per_second / 1e9
    return [
        f"# {device}: {name}",
        "",
        f"vkml {vkml.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs. "
        f"Copy {copy:.1f} GB/s, FMA {fma:.0f} GFLOP/s (f32).",
        f"Peer: {peer or 'none'}. Ratios above 1: vkml is faster.",
    ]


def time_text(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def row(r: dict[str, Any]) -> tuple[str, ...]:
    if r.get("error"):
        return (r["case"], r["shape"], r["dtype"], "-", "-", "-", "-", "-", r["error"])
    rate = f"{r['gflop_per_s']:.1f} GFLOP/s" if r["flops"] else f"{r['gb_per_s']:.1f} GB/s"
    peer = f"{r['peer_ratio']:.2f}x" if r["peer_ratio"] else "-"
    times = time_text(r["seconds"]), time_text(r["kernel_seconds"])
    return (r["case"], r["shape"], r["dtype"], *times, rate, f"{r['of_floor']:.0%}", peer, r["check"])


def markdown(head: list[str], results: list[dict[str, Any]]) -> str:
    lines = [*head, "", "| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row(r)) + " |" for r in results]
    return "\n".join(lines) + "\n"


def write(folder: Path, facts: dict[str, Any], head: list[str]) -> Path:
    """<device>.json and <device>.md; returns the path without a suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / facts["device"].replace(":", "-")
    stem.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(head, facts["results"]))
    return stem

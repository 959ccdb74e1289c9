#!/usr/bin/env python3
"""Checks the #includes against the layers: core < runtime < autograd < ops < python.

A file includes its own layer and the ones before it. vkml/core stays within itself, and only vkml/runtime/vulkan sees
Vulkan headers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LAYERS = ["core", "runtime", "autograd", "ops", "python"]
# (including file, included file) pairs that may go upward; each needs a reason beside it.
SEAMS: set[tuple[str, str]] = set()
SUFFIXES = {".h", ".cpp", ".def", ".slang"}
VULKAN_HEADER = re.compile(r"vulkan/|vk_mem_alloc|vk_video/")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)


def layer_of(path: str) -> str | None:
    """The layer of a path relative to the root; None for files above the layers (vkml/vkml.h, tests, examples)."""
    parts = path.split("/")
    if parts[0] == "python" or path.endswith("_py.cpp"):
        return "python"
    if parts[0] == "vkml" and len(parts) > 2 and parts[1] in LAYERS:
        return parts[1]
    return None


def problem(source: str, included: str) -> str | None:
    """What is wrong with one include, or None."""
    folder = layer_of(source)
    if folder is None or (source, included) in SEAMS:
        return None
    if VULKAN_HEADER.match(included) and not source.startswith("vkml/runtime/vulkan/"):
        return "only vkml/runtime/vulkan may include Vulkan headers"
    target = layer_of(included)
    if target is None:
        if included == "vkml/vkml.h" and folder != "python":
            return "vkml/vkml.h is for users of the library"
        return None
    if LAYERS.index(target) > LAYERS.index(folder):
        return f"{folder} may not include {target}"
    return None


def resolve(root: Path, source: Path, included: str) -> str:
    """An include relative to the including file, as a path from the root."""
    beside = source.parent / included
    if not included.startswith("vkml/") and beside.is_file():
        return beside.resolve().relative_to(root).as_posix()
    return included


def check(root: Path) -> list[str]:
    root = root.resolve()
    problems = []
    sources = [p for top in ("vkml", "python") for p in sorted((root / top).rglob("*")) if p.suffix in SUFFIXES]
    for source in sources:
        text = source.read_text(encoding="utf-8")
        shown = source.relative_to(root).as_posix()
        for match in INCLUDE.finditer(text):
            wrong = problem(shown, resolve(root, source, match[1]))
            if wrong:
                line = text.count("\n", 0, match.start(1)) + 1
                problems.append(f'{shown}:{line}: includes "{match[1]}": {wrong}')
    return problems


def main() -> int:
    problems = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks what users of the C++ library see: vkml/vkml.h, the header of each operator folder named after it, and what
these include. No header of a kernel, a backend or a binding may be among them, and every folder has its header.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^#include "(vkml/[^"]+)"', re.M)
INTERNAL = re.compile(
    r"(_(args|kernels?|cpu|internal|launch|choice|py)|-inl)\.h$|\.spv\.h$|^vkml/runtime/(cpu|vulkan|slang|probe)/"
)
WRITTEN_BY_THE_BUILD = "vkml/operators.h"


def folders(root: Path) -> list[Path]:
    return sorted(p for p in (root / "vkml" / "ops").glob("*") if p.is_dir() and any(p.iterdir()))


def public_headers(root: Path) -> dict[str, str]:
    """Every public header, and the file that makes it one."""
    todo = [("vkml/vkml.h", "vkml/vkml.h")]
    todo += [(f"vkml/ops/{f.name}/{f.name}.h", WRITTEN_BY_THE_BUILD) for f in folders(root)]
    found: dict[str, str] = {}
    while todo:
        header, why = todo.pop(0)
        path = root / header
        if header in found or header == WRITTEN_BY_THE_BUILD or not path.is_file():
            continue
        found[header] = why
        todo += [(name, header) for name in INCLUDE.findall(path.read_text(encoding="utf-8"))]
    return found


def check(root: Path) -> list[str]:
    problems = [
        f"vkml/ops/{f.name}: no public header, expected vkml/ops/{f.name}/{f.name}.h"
        for f in folders(root)
        if not (f / f"{f.name}.h").is_file()
    ]
    for header, why in public_headers(root).items():
        text = (root / header).read_text(encoding="utf-8")
        if INTERNAL.search(header) or ".spv.h" in text:
            problems.append(f"{why}: is public, but includes the internal {header}")
    return problems


def main() -> int:
    problems = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

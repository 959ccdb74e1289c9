#!/usr/bin/env python3
"""Reports source files of more than 500 lines. A warning: it never fails."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 500
SUFFIXES = {".h", ".cpp", ".slang", ".py", ".def"}


def check(root: Path) -> list[str]:
    found = []
    for top in ("vkml", "python", "tests", "bench", "examples", "scripts", "cmake"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                lines = path.read_bytes().count(b"\n")
                if lines > LIMIT:
                    found.append(f"warning: {path.relative_to(root).as_posix()} has {lines} lines, more than {LIMIT}")
    return found


if __name__ == "__main__":
    for line in check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1]):
        print(line)

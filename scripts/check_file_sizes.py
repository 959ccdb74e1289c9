#!/usr/bin/env python3
"""Checks that no source file, test or script has more than 500 lines."""

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
                    found.append(f"{path.relative_to(root).as_posix()}: has {lines} lines, more than {LIMIT}")
    return found


def main() -> int:
    problems = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

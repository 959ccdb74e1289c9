#!/usr/bin/env python3
"""Checks that every operator folder vkml/ops/<op>/ has its test, tests/ops/test_<op>*.py."""

from __future__ import annotations

import sys
from pathlib import Path


def check(root: Path) -> list[str]:
    folders = sorted(p for p in (root / "vkml" / "ops").glob("*") if p.is_dir() and any(p.iterdir()))
    return [
        f"vkml/ops/{folder.name}: no test, expected tests/ops/test_{folder.name}.py"
        for folder in folders
        if not any((root / "tests" / "ops").glob(f"test_{folder.name}*.py"))
    ]


def main() -> int:
    problems = check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

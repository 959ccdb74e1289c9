"""Whatever the elementwise tables list is declared in tests/ops, so no line of a .def goes untested."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

TESTS = Path(__file__).parent
DEFS = TESTS.parent / "vkml" / "ops" / "elementwise"


def names_in_defs() -> set[str]:
    """The operators of the .def files, down to the comment that starts the helpers of gradients."""
    names: set[str] = set()
    for path in DEFS.glob("*.def"):
        public = path.read_text().split("// What gradients above")[0]
        names |= set(re.findall(r"^VKML_\w+\((\w+),", public, re.M))
    return names


def declared_names() -> set[str]:
    sys.path.insert(0, str(TESTS / "ops"))
    for path in sorted((TESTS / "ops").glob("test_*.py")):
        importlib.import_module(path.stem)
    from op_cases import declared

    return {case.name for case in declared}


def test_every_line_of_the_defs_is_declared() -> None:
    listed = names_in_defs()
    assert len(listed) > 50
    # gelu's two forms are one operator to its users.
    missing = listed - declared_names() - {"gelu_tanh"}
    assert not missing, f"no op_cases() in tests/ops for: {sorted(missing)}"

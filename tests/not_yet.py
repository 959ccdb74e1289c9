"""Operators that a later milestone brings: the one place where a missing operator is excused, and only by name.

Conformance cases that need one of these are skipped with its name. An entry for one that exists fails the tests.
"""

from __future__ import annotations

import functools

import pytest

import vkml

NOT_YET: set[str] = set()

# Layers and the operator below them that may be missing.
NEEDS = {"nn.BatchNorm2d": "batch_norm"}


def exists(name: str) -> bool:
    try:
        functools.reduce(getattr, name.split("."), vkml)
    except AttributeError:
        return False
    return True


def skip_if_not_yet(names: set[str]) -> None:
    if missing := sorted(names & NOT_YET):
        pytest.skip(f"not yet implemented: {', '.join(missing)}")


def assert_list_is_current() -> None:
    stale = sorted(name for name in NOT_YET if exists(name))
    assert not stale, f"these exist now: take them off the list in tests/not_yet.py: {stale}"

"""Fixtures of every test: the device, reproducible numbers, and no device fault carried into the next test."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import zlib
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # a bench machine: its tests are not run there
    settings = None

sys.path.insert(0, str(Path(__file__).parent))  # helpers and op_cases, whatever pytest's import mode

# Run by hand, without PYTHONPATH: then vkml is nothing, or the folder of C++ beside tests. Child processes need it too.
found = importlib.util.find_spec("vkml")
if found is None or found.origin is None:
    python = str(Path(__file__).parent.parent / "python")
    sys.path.insert(0, python)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [python, os.environ.get("PYTHONPATH")]))

DEVICES = ["cpu", "vulkan:0"]

pytest.register_assert_rewrite("helpers", "op_cases")


# The fixtures are the same for every example. CI draws the same examples every time; elsewhere new ones are tried.
if settings:
    settings.register_profile(
        "vkml",
        deadline=None,
        max_examples=40,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    settings.load_profile("vkml")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        type=int,
        default=1,
        metavar="N",
        help="of tests/ops, about one test in N of what -k leaves: the first of each class or function, and every Nth",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """--share=N, the same selection on every run: an operator's class or function always keeps at least one test.

    Each keeps a different residue modulo N, so that together they meet all dtypes and checks.
    """
    n = config.getoption("--share")
    if n <= 1:
        return
    seen: dict[str, int] = {}
    kept, dropped = [], []
    for item in items:
        file, *names = item.nodeid.split("::")
        owner = f"{file}::{names[0].split('[')[0]}"
        count = seen[owner] = seen.get(owner, -1) + 1
        whole = "tests/ops/" not in file
        kept_one = count % n == zlib.crc32(owner.encode()) % n or count == 0
        (kept if whole or kept_one else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "large: needs more than a million elements")
    config.addinivalue_line("markers", "torch: compares with PyTorch; skipped where it is not installed")


@functools.cache
def why_no_vulkan() -> str:
    """Empty when vulkan:0 can be used."""
    import vkml

    vulkan = [d for d in vkml.devices() if str(d.device).startswith("vulkan")]
    usable = any(str(d.device) == "vulkan:0" and getattr(d, "usable", True) is not False for d in vulkan)
    if usable and vkml.has_vulkan:
        return ""
    return "; ".join(f"{d.name}: {d.why}" for d in vulkan) or "vkml.devices() lists no Vulkan device"


def require(device: str) -> None:
    """Skips, visibly, where there is no Vulkan; fails where the test run promised one (VKML_REQUIRE_VULKAN=1)."""
    if device.startswith("vulkan") and (why := why_no_vulkan()):
        if os.environ.get("VKML_REQUIRE_VULKAN") == "1":
            pytest.fail(f"VKML_REQUIRE_VULKAN=1 but vulkan:0 cannot be used: {why}")
        pytest.skip(f"vulkan:0 cannot be used: {why}")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """ "cpu", then "vulkan:0"."""
    require(request.param)
    return request.param


@pytest.fixture(params=["vulkan:0"])
def vulkan(request: pytest.FixtureRequest) -> str:
    """The Vulkan device, for tests of it alone or against the CPU. The test's id holds "vulkan"."""
    require(request.param)
    return request.param


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's name only."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(autouse=True)
def seeded_and_clean() -> Generator[None, None, None]:
    np.random.seed(20240229)
    vkml = sys.modules.get("vkml")
    if hasattr(vkml, "manual_seed"):
        vkml.manual_seed(0)
    yield
    vkml = sys.modules.get("vkml")
    if vkml is None:
        return
    try:
        vkml.synchronize()  # clears the fault that a kernel reported and nobody read
    except vkml.Error as error:
        pytest.fail(f"the test left a device fault unread: {error}")

"""A pytest plugin that fails a test when the Vulkan validation layer says anything while it runs."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

SETTINGS = """\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = {log}
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.validate_sync = true
"""


def log_folder() -> Path:
    return Path(os.environ["VKML_VALIDATION_LOGS"])


def write_settings(name: str) -> Path:
    """A settings file for one process; its messages go to <name>.txt beside it."""
    folder = log_folder() / f"{name}.settings"
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "vk_layer_settings.txt"
    settings.write_text(SETTINGS.format(log=log_folder() / f"{name}.txt"))
    return settings


def log_file() -> Path:
    return log_folder() / f"pytest-{os.getpid()}.txt"


def children_log() -> Path:
    """Of the processes that a test starts. The layer empties its log at the start, so they need their own."""
    return log_folder() / f"children-{os.getpid()}.txt"


def pytest_sessionstart(session: pytest.Session) -> None:
    """The layer reads its settings when the first instance is made: make it now, with a log of this process."""
    if getattr(session.config.option, "numprocesses", None) and not hasattr(session.config, "workerinput"):
        return  # runs no test
    os.environ["VK_LAYER_SETTINGS_PATH"] = str(write_settings(log_file().stem))
    import vkml

    vkml.devices()
    if not log_file().exists():
        pytest.exit("the Vulkan validation layer is not active: install vulkan-validationlayers", returncode=1)
    os.environ["VK_LAYER_SETTINGS_PATH"] = str(write_settings(children_log().stem))


read_so_far = 0


def new_messages() -> str:
    global read_so_far
    with log_file().open("rb") as log:
        log.seek(read_so_far)
        text = log.read()
    read_so_far += len(text)
    if children_log().exists():
        text += children_log().read_bytes()
        children_log().unlink()
    return text.decode(errors="replace").strip()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    try:
        result = yield
    except BaseException:
        item.add_report_section("call", "Vulkan validation", new_messages())
        raise
    if messages := new_messages():
        pytest.fail(f"Vulkan validation:\n{messages}", pytrace=False)
    return result

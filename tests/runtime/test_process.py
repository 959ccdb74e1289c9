"""Import, exit, fork: what happens once per process."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from runtime_helpers import run_python

HIDE_LOADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
    static void *(*next)(const char *, int);
    if (!next) next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(name && strstr(name, "libvulkan") ? "libvulkan-is-hidden.so" : name, flags);
}
"""


@pytest.fixture(scope="session")
def without_loader(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no Vulkan loader can be opened, whatever is installed."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("c++")
    assert compiler, "no C compiler to hide the Vulkan loader with"
    folder = tmp_path_factory.mktemp("hide")
    (folder / "hide.c").write_text(HIDE_LOADER)
    library = folder / "hide.so"
    subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", library, folder / "hide.c", "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def test_import_works_without_a_vulkan_loader(without_loader: dict[str, str]) -> None:
    done = run_python(
        """
        import vkml
        devices = vkml.devices()
        print(devices)
        assert [str(d.device) for d in devices if d.usable] == ["cpu"], devices
        missing = [d for d in devices if not d.usable]
        assert missing and all(d.why for d in missing)
        print("WHY:", missing[0].why)
        assert not vkml.has_vulkan
        assert float((vkml.ones((3,)) + 1.0).sum()) == 6.0
        try:
            vkml.ones((3,), device="vulkan")
        except vkml.DeviceError as error:
            print("ERROR:", error)
        else:
            raise AssertionError("no DeviceError")
        """,
        without_loader,
    )
    why = next(line for line in done.stdout.splitlines() if line.startswith("WHY:"))
    assert "loader" in why or "libvulkan" in why, why
    assert "ERROR:" in done.stdout
    assert done.stderr == ""


def test_import_works_without_a_vulkan_driver(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.json")
    done = run_python(
        """
        import vkml
        records = [d for d in vkml.devices() if not d.usable]
        assert records and records[0].why, vkml.devices()
        print(records[0].why)
        assert float(vkml.ones((3,)).sum()) == 3.0
        """,
        {"VK_ICD_FILENAMES": nowhere, "VK_DRIVER_FILES": nowhere},
    )
    assert done.stdout.strip()


def test_import_prints_nothing_and_opens_no_device() -> None:
    done = run_python(
        """
        import sys, vkml
        assert "torch" not in sys.modules
        maps = open("/proc/self/maps").read()
        assert "libvulkan" not in maps, "importing opened the Vulkan loader"
        """
    )
    assert done.stdout == done.stderr == ""


def test_exit_with_live_tensors(device: str) -> None:
    done = run_python(
        f"""
        import vkml, threading
        device = {device!r}
        kept = [vkml.ones((1000,), device=device).requires_grad_() for _ in range(10)]
        graph = sum(((k * 2.0).sum() for k in kept), vkml.zeros((), device=device))
        graph.backward(retain_graph=True)
        vkml.nn.kept = graph                        # outlives this module
        cycle = [kept]; cycle.append(cycle)
        capture = vkml.capture(lambda: kept[0] * 3.0)
        for _ in range(3): pending = kept[1] * 2.0  # recorded, never waited for
        """,
        {"VKML_DEVICE": device},
    )
    assert done.stderr == ""


def test_exit_after_an_unread_fault(device: str) -> None:
    done = run_python(
        f"""
        import vkml
        w = vkml.ones((4, 2), device={device!r})
        try:
            y = vkml.embedding(w, vkml.tensor([1, 9], device={device!r}))
        except vkml.IndexError_:
            pass
        """
    )
    assert "terminate" not in done.stderr


def test_exit_while_another_thread_computes(device: str) -> None:
    run_python(
        f"""
        import threading, time, vkml
        x = vkml.ones((256,), device={device!r})
        def work():
            y = x
            while True: y = y * 1.0
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """
    )


def test_fork_after_use(device: str) -> None:
    """In the child the CPU computes and the GPU says clearly that it cannot; the parent goes on."""
    run_python(
        f"""
        import os, sys, numpy as np, vkml
        device = {device!r}
        big = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
        def work(where):
            x = vkml.tensor(big, device=where)
            return float(((x @ x) + 1.0).sum())
        on_cpu, here = work("cpu"), work(device)
        live = vkml.ones((3,), device=device)
        child = os.fork()
        if child == 0:
            try:
                assert work("cpu") == on_cpu
                if device != "cpu":
                    for call in (lambda: vkml.ones((3,), device=device), lambda: live + 1.0, lambda: live.numpy()):
                        try:
                            call()
                        except vkml.DeviceError as error:
                            assert "fork" in str(error), error
                        else:
                            raise AssertionError("no DeviceError in the child")
            except BaseException as problem:
                print("child:", type(problem).__name__, problem, flush=True)
                os._exit(3)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert work(device) == here and float(live.sum()) == 3.0
        """
    )


def test_forked_child_exits_cleanly(device: str) -> None:
    run_python(
        f"""
        import os, sys, vkml
        live = vkml.ones((3,), device={device!r}) * 2.0
        child = os.fork()
        if child == 0:
            sys.exit(0)  # runs the interpreter's whole shutdown in the child
        assert os.waitpid(child, 0)[1] == 0
        assert float(live.sum()) == 6.0
        """
    )


def test_default_device_comes_from_the_environment(vulkan: str) -> None:
    run_python(
        f"""
        import vkml
        assert str(vkml.ones((1,)).device) == {vulkan!r}
        assert {{"name": "VKML_DEVICE", "value": {vulkan!r}, "set": True}} in vkml.configuration()
        """,
        {"VKML_DEVICE": vulkan},
    )


def test_pipeline_cache_folder(vulkan: str, tmp_path: Path) -> None:
    """The folder is made and filled at exit, used by the next process, and a damaged file does no harm."""
    folder = tmp_path / "made" / "cache"
    code = f"""
        import vkml
        x = vkml.ones((100,), device={vulkan!r})
        assert float((x * 2.0 + 1.0).sum()) == 300.0
    """
    env = {"VKML_PIPELINE_CACHE": str(folder)}
    run_python(code, env)
    files = [f for f in folder.rglob("*") if f.is_file()]
    assert files, "nothing was written"
    assert all(f.stat().st_size >= 32 for f in files), "not even Vulkan's own header"
    run_python(code, env)
    for f in files:
        f.write_bytes(b"\xff" + f.read_bytes()[1:50])
    run_python(code, env)
    empty = tmp_path / "home"
    run_python(code, {"VKML_PIPELINE_CACHE": "", "HOME": str(empty), "XDG_CACHE_HOME": str(empty / "cache")})
    assert not empty.exists(), "VKML_PIPELINE_CACHE= means no cache"


def test_minimum_limits(vulkan: str) -> None:
    """VKML_MIN_SPEC=1: the guaranteed limits are enough for everything."""
    run_python(
        f"""
        import numpy as np, vkml
        rng = np.random.default_rng(1)
        a = rng.normal(size=(70, 130)).astype(np.float32)
        x = vkml.tensor(a, device={vulkan!r}).requires_grad_()
        y = vkml.softmax(x @ x.transpose(0, 1), -1)
        (y * y).sum().backward()
        assert np.allclose(y.detach().numpy().sum(1), 1, atol=1e-5)
        assert np.isfinite(x.grad.numpy()).all()
        assert np.allclose(vkml.sum(x.detach()).numpy(), a.sum(dtype=np.float64), atol=1e-2)
        """,
        {"VKML_MIN_SPEC": "1"},
    )


def test_self_report_runs() -> None:
    done = run_python("import runpy, sys; sys.argv = ['vkml']; runpy.run_module('vkml', run_name='__main__')")
    assert "cpu" in done.stdout

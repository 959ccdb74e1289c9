#!/usr/bin/env python3
"""Packs what a machine without network needs to build vkml: one archive for bench/gpu.sh.

In it: headers and shared libraries of Vulkan, Highway, oneDNN and fmt as the build here found them, every kernel of the
build as a filled kernel cache, stand-ins for the shader tools that answer with their versions and refuse to compile,
the Vulkan loader, and the wheels the tests import.

Usage: pack_gpu_deps.py [--build build/release] [--out build/gpu-deps.tar.xz] [--python 3.12]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake"))

import compile_kernel  # noqa: E402
import fetch_kernel_tools  # noqa: E402

# One header of each library and what has to travel beside it.
HEADERS = {
    "vulkan/vulkan.hpp": ["vulkan", "vk_video"],
    "hwy/highway.h": ["hwy"],
    "fmt/format.h": ["fmt"],
    "oneapi/dnnl/dnnl.hpp": ["oneapi", "dnnl.h", "dnnl.hpp", "dnnl_config.h", "dnnl_version.h"],
}
LIBRARIES = ["dnnl", "fmt", "hwy", "vulkan"]
WHEELS = ["ml_dtypes"]
# Part of every system that has a C++ compiler.
SYSTEM = {"libc", "libm", "libgcc_s", "libstdc++", "libgomp", "libpthread", "libdl", "librt", "ld-linux-x86-64"}

STAND_IN = """\
#!/bin/sh
case "$1" in -v | --version) echo "{version}" ;; *)
    echo "{name}: only its version travelled; the kernel cache lacks this kernel: pack again" >&2
    exit 1 ;;
esac
"""


def cached(build: Path, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}:[A-Z]+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def pack_headers(build: Path, out: Path) -> None:
    roots = [Path(r) for r in (cached(build, "VKML_VULKAN_HEADERS"), "/usr/include", "/usr/local/include") if r]
    for header, names in HEADERS.items():
        root = next((r for r in roots if (r / header).exists()), None)
        if root is None:
            sys.exit(f"error: no {header}")
        for name in names:
            if (root / name).is_dir():
                shutil.copytree(root / name, out / "include" / name, dirs_exist_ok=True)
            elif (root / name).exists():
                shutil.copy(root / name, out / "include" / name)


def needed(library: Path) -> dict[str, Path]:
    """soname -> file of everything it loads that no C++ system has."""
    lines = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout.splitlines()
    found = (re.match(r"\s*(\S+) => (/\S+)", line) for line in lines)
    return {m[1]: Path(m[2]) for m in found if m and m[1].split(".so")[0] not in SYSTEM}


def pack_libraries(out: Path) -> None:
    folder = out / "lib"
    folder.mkdir(parents=True)
    candidates = [Path("/usr/lib"), *Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/local/lib")]
    for name in LIBRARIES:
        path = next((c / f"lib{name}.so" for c in candidates if (c / f"lib{name}.so").exists()), None)
        if path is None:
            sys.exit(f"error: no lib{name}.so")
        dump = subprocess.run(["objdump", "-p", path], check=True, capture_output=True, text=True).stdout
        soname = re.search(r"SONAME\s+(\S+)", dump)[1]
        for target, source in {soname: path, **needed(path)}.items():
            shutil.copy(source.resolve(), folder / target)
        (folder / f"lib{name}.so").symlink_to(soname)


def pack_kernels(build: Path, out: Path) -> None:
    """Every compiled module under the key that the build over there will ask for."""
    tools = build_tools()
    count = 0
    sources = sorted([*(ROOT / "vkml").rglob("*.slang"), *(ROOT / "tests" / "cpp").glob("*.slang")])
    for source in sources:
        relative = source.relative_to(ROOT).as_posix()
        modules = compile_kernel.modules_of(relative, compile_kernel.read_directives(source, relative))
        closure = compile_kernel.closure(ROOT, relative) if modules else []
        for module in modules:
            built = build / "generated" / module.output
            if not built.exists():
                sys.exit(f"error: {built} is missing; build first")
            key = compile_kernel.cache_key(ROOT, closure, module.command, tools["VERSIONS"])
            target = out / "kernels" / "vkml" / "kernels" / key[:2] / f"{key}.spv"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built, target)
            count += 1
    print(f"{count} kernels")
    stand_ins(out / "bin", tools)


def build_tools() -> dict[str, str]:
    """What fetch_kernel_tools.py tells CMake."""
    command = [sys.executable, fetch_kernel_tools.__file__, "--dir", str(ROOT / "build" / "tools")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def stand_ins(folder: Path, tools: dict[str, str]) -> None:
    folder.mkdir()
    _, slang, _, spirv = tools["VERSIONS"].split()
    for name, version in (
        ("slangc", slang),
        ("spirv-opt", f"SPIRV-Tools v{spirv}"),
        ("spirv-val", f"SPIRV-Tools v{spirv}"),
    ):
        path = folder / name
        path.write_text(STAND_IN.format(name=name, version=version))
        path.chmod(0o755)


def pack_wheels(out: Path, python: str) -> None:
    pinned = (ROOT / "requirements-dev.txt").read_text()
    wanted = [re.search(rf"^{name}==\S+", pinned, re.M)[0] for name in WHEELS]
    platforms = [f"--platform=manylinux_2_{glibc}_x86_64" for glibc in (28, 27, 17)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *platforms]
    subprocess.run([*command, f"--python-version={python}", "--dest", out / "wheels", *wanted], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu-deps.tar.xz")
    parser.add_argument("--python", default="3.12", help="the version over there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "gpu-deps")
        folder.mkdir()
        pack_headers(given.build, folder)
        pack_libraries(folder)
        pack_kernels(given.build, folder)
        pack_wheels(folder, given.python)
        with tarfile.open(given.out, "w:xz", preset=3) as archive:
            archive.add(folder, "gpu-deps")
    print(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

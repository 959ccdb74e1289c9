"""Completes the stub that nanobind writes: what it cannot see, and builtins that methods of Tensor hide.

python finish_stub.py generated.pyi finished.pyi
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEAD = '''import builtins
import numpy as numpy
import typing
import collections.abc

__version__: str

class Error(RuntimeError): ...
class ShapeError(Error, ValueError): ...
class DTypeError(Error, TypeError): ...
class IndexError_(Error, IndexError): ...
class DeviceError(Error): ...
class NotImplementedError_(Error, NotImplementedError): ...
class OutOfMemoryError(Error, MemoryError): ...

class Size(builtins.int):
    """An element count that can also be called: the shape, or an extent."""

    @typing.overload
    def __call__(self) -> tuple[builtins.int, ...]: ...
    @typing.overload
    def __call__(self, dim: builtins.int) -> builtins.int: ...

class Flag(builtins.int):
    """A truth value that can also be called."""

    def __call__(self) -> builtins.bool: ...

_dtype = dtype
_device = device

'''
# Types, and not the names of parameters: those follow a bracket or a comma and are followed by a colon.
TYPE = re.compile(r"(: |\| |-> |\[)(int|float|bool|dtype|device)\b|(, )(int|float|bool)\b(?![:=])")


def qualified(match: re.Match[str]) -> str:
    before, word = match[1] or match[3], match[2] or match[4]
    return before + (f"_{word}" if word in ("dtype", "device") else f"builtins.{word}")


def finish(text: str) -> str:
    out, inside = [], False
    for line in text.splitlines():
        if line and not line[0].isspace():
            inside = line.startswith("class Tensor")
        if inside and line.lstrip().startswith("def "):
            name, bracket, rest = line.partition("(")
            line = name + bracket + TYPE.sub(qualified, rest)
            line = line.replace("protocol: builtins.int", "protocol: typing.SupportsIndex")
            if re.match(r"\s+def __(eq|ne)__\(", line):
                line += "  # type: ignore[override]"
        out.append(line)
    return HEAD + "\n".join(out) + "\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(finish(Path(sys.argv[1]).read_text()))

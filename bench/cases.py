"""The benchmark cases: every `bench=` of a declaration in tests/ops, found by importing the tests."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from op_cases import Bench, OpCases

ROOT = Path(__file__).parents[1]
ITEMSIZE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}


def random_numbers(
    rng: np.random.Generator, shape: tuple[int, ...], low: float = -1.0, high: float = 1.0
) -> np.ndarray:
    """Never zeros; large arrays repeat a block of two million numbers."""
    n = math.prod(shape)
    return np.resize(rng.uniform(low, high, min(n, (1 << 21) + 7)).astype(np.float32), n).reshape(shape)


@dataclass
class Case:
    declared: OpCases
    bench: Bench

    @property
    def label(self) -> str:
        settings = " ".join(f"{k}={v}" for k, v in self.bench.kwargs.items())
        return " ".join(filter(None, [self.declared.name, settings, "backward" if self.bench.backward else ""]))

    @property
    def shape(self) -> str:
        return " ".join("x".join(map(str, s)) or "scalar" for s in self.bench.shapes)

    def arrays(self) -> list[np.ndarray]:
        """Random inputs."""
        rng = np.random.default_rng(1)
        if self.declared.make:
            return [np.asarray(a) for a in self.declared.make(rng, *self.bench.shapes, **self.bench.kwargs)]
        out = []
        for i, shape in enumerate(self.bench.shapes):
            low, high = self.declared.domains[min(i, len(self.declared.domains) - 1)]
            out.append(random_numbers(rng, shape, low, high))
        return out

    def bytes(self, arrays: list[np.ndarray], outputs: list[Any]) -> float:
        """What has to be moved: as declared, else every input and output once (backward: the gradients too)."""
        if self.bench.bytes is not None:
            return self.bench.bytes
        size = ITEMSIZE[self.bench.dtype]
        read = sum(a.size * (size if a.dtype.kind == "f" else a.itemsize) for a in arrays)
        written = sum(y.numel() * y.element_size() for y in outputs)
        return read + written if not self.bench.backward else 2 * read + written


def declared_cases(only: Sequence[str] = ("",)) -> Iterator[Case]:
    """Cases whose label holds one of `only`. A test file that fails to import is an error, not a gap in the table."""
    for folder in (ROOT / "tests", ROOT / "tests" / "ops", ROOT / "python"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    for path in sorted((ROOT / "tests" / "ops").glob("test_*.py")):
        importlib.import_module(path.stem)
    from op_cases import declared

    for cases in declared:
        for bench in cases.bench:
            case = Case(cases, bench)
            if any(word in case.label for word in only):
                yield case

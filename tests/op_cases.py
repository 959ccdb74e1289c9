"""One declaration tests an operator: values, layouts, dtypes, gradients, errors, devices, repeatability, benchmark.

    TestSoftmax = op_cases("softmax", np_softmax, torch="softmax", shapes=ROWS, dim=[-1, 0], dtypes=FLOATS,
                           tolerance=Tolerance(row=1e-5), second=True, bench=[bench((4096, 1024), dim=-1)])

A list given by keyword (`dim=[-1, 0]`) is a sweep: each value in turn is passed to vkml, the reference and torch alike.
The reference takes float64 arrays of the rounded inputs (integer and bool arrays as they are) and answers in float64.
`python -m bench` finds the benchmark cases through `declared`.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import op_checks
import pytest
from helpers import ALL, FLOATS, INTEGERS, LAYOUTS

import vkml

__all__ = [
    "ALL", "BROADCAST", "EXACT", "FLOATS", "INTEGERS", "PAIRS", "ROWS", "SHAPES", "Bench", "Tolerance", "bench",
    "op_cases",
]  # fmt: skip

SHAPES = [(), (1,), (0,), (7,), (3, 5), (2, 0, 3), (2, 3, 4), (1, 129), (2, 1, 3, 1, 2)]
ROWS = [(), (1,), (5,), (0, 5), (3, 0), (4, 7), (2, 3, 4), (3, 1), (2, 300), (3, 1027)]
PAIRS = [((), ()), ((3,), (3,)), ((0, 2), (0, 2)), ((2, 3), (2, 3)), ((33, 65), (33, 65))]
BROADCAST = [*PAIRS, ((2, 3), ()), ((), (4,)), ((3, 1), (4,)), ((2, 1, 3), (5, 1)), ((1, 0), (3, 1)), ((2, 3), (1, 3))]


@dataclass(frozen=True)
class Tolerance:
    """The allowed error in f32, scaled to f64 by its eps; 16-bit results get 1 ulp of their own on top."""

    ulp: float = 0.0  # units in the last place of the result; of this and `rel` the larger counts
    rel: float = 0.0  # of the result
    row: float = 0.0  # of the largest magnitude in the result
    abs: float = 0.0
    # bound(eps, *arrays, **kwargs) -> array of absolute errors, for sums: eps is 2^-23, or 2^-52 in f64
    bound: Callable[..., np.ndarray] | None = None
    exact: bool = False  # the correctly rounded result, nothing else


EXACT = Tolerance(exact=True)


@dataclass(frozen=True)
class Bench:
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    kwargs: dict[str, Any]
    flops: float | None  # None: counted in bytes only
    bytes: float | None  # None: every input read and the output written once
    backward: bool
    outputs: int | None  # how many of the results are differentiated and compared; None: all
    scale: float  # the least magnitude that errors are measured against: of terms that cancel in the result
    random: bool  # the peer draws other numbers: compared with the reference alone


def bench(*shapes: tuple[int, ...], dtype: str = "float32", flops: float | None = None, bytes: float | None = None,
          backward: bool = False, outputs: int | None = None, scale: float = 0.0, random: bool = False,
          **kwargs: Any) -> Bench:  # fmt: skip
    """One line of the benchmark table: input shapes and what the kernel cannot do without."""
    return Bench(shapes, dtype, kwargs, flops, bytes, backward, outputs, scale, random)


@dataclass
class OpCases:
    """What op_cases() was told. `op_checks` has the checks, `bench` reads the same."""

    name: str
    op: Callable[..., Any]
    reference: Callable[..., Any] | None
    torch: Callable[..., Any] | str | None
    shapes: Sequence[Any]
    dtypes: Sequence[str]
    tolerance: Tolerance
    domains: Sequence[tuple[float, float]]
    make: Callable[..., Sequence[np.ndarray]] | None
    result: Callable[[str], str]
    gradients: bool
    second: bool
    grad_tolerance: float
    grad_floor: float
    grad_shapes: Sequence[Any]
    layouts: Sequence[str]
    batched: bool
    same_bits: bool
    vulkan_dtypes: Sequence[str]
    errors: Sequence[tuple[Any, str, str]]
    bench: Sequence[Bench]
    sweep: dict[str, list[Any]] = field(default_factory=dict)

    def settings(self) -> list[dict[str, Any]]:
        """Every combination of the swept keyword arguments; one empty dict when there are none."""
        return [dict(zip(self.sweep, values, strict=True)) for values in itertools.product(*self.sweep.values())]

    def shapes_of(self, case: Any) -> tuple[tuple[int, ...], ...]:
        """A case names one shape, or a tuple of shapes."""
        return case if case and isinstance(case[0], tuple) else (case,)

    def inputs(
        self, shapes: Sequence[tuple[int, ...]], kwargs: dict[str, Any], seed: str, dtype: str
    ) -> list[np.ndarray]:
        """Float64 arrays for the arguments that take the dtype; integer and bool arrays for the others."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {shapes} {kwargs} {seed}".encode()))
        if self.make:
            return [np.asarray(a) for a in self.make(rng, *shapes, **kwargs)]
        out = []
        for i, shape in enumerate(shapes):
            low, high = self.domains[min(i, len(self.domains) - 1)]
            values = rng.uniform(low, high, shape)
            if dtype in INTEGERS or dtype == "bool":
                values = np.trunc(np.clip(values, 0, None) if dtype == "uint8" else values)
            out.append(np.asarray(values))
        return out

    def fits(self, shapes: Sequence[tuple[int, ...]], kwargs: dict[str, Any]) -> bool:
        """False for an axis the shape does not have: such pairs of a sweep are left out."""
        rank = max(len(shapes[0]), 1)
        axes = kwargs.get("dim")
        axes = axes if isinstance(axes, (tuple, list)) else [axes]
        return all(a is None or -rank <= a < rank for a in axes)

    def runs(self, which: Sequence[Any] | None = None) -> Iterator[tuple[tuple[tuple[int, ...], ...], dict[str, Any]]]:
        """Every (shapes, kwargs) that fit together."""
        found = False
        for case in self.shapes if which is None else which:
            for kwargs in self.settings():
                if self.fits(self.shapes_of(case), kwargs):
                    found = True
                    yield self.shapes_of(case), kwargs
        assert found, f"{self.name}: no shape fits any setting"


declared: list[OpCases] = []


def bench_cases(name: str, op: Callable[..., Any] | str, reference: Callable[..., Any], torch: Any,
                bench: Sequence[Bench], **settings: Any) -> None:  # fmt: skip
    """Benchmark lines of an operator whose tests are written out."""
    op_cases(op, reference, name=name, torch=torch, bench=bench, **settings)


def resolve(op: Callable[..., Any] | str) -> Callable[..., Any]:
    """A function of vkml by its dotted name, looked up when called, so a missing one fails its tests only."""
    if not isinstance(op, str):
        return op
    return lambda *args, **kwargs: functools.reduce(getattr, op.split("."), vkml)(*args, **kwargs)


def same(dtype: str) -> str:
    return dtype


def op_cases(
    op: Callable[..., Any] | str,
    reference: Callable[..., Any] | None,
    *,
    name: str = "",
    torch: Callable[..., Any] | str | None = None,
    shapes: Sequence[Any] = SHAPES,
    dtypes: Sequence[str] = FLOATS,
    tolerance: Tolerance = EXACT,
    domain: tuple[float, float] | list[tuple[float, float]] = (-3.0, 3.0),
    inputs: Callable[..., Sequence[np.ndarray]] | None = None,
    result: Callable[[str], str] | str = same,
    gradients: bool = True,
    second: bool = False,
    grad_tolerance: float = 1e-5,
    grad_floor: float = 0.0,
    grad_shapes: Sequence[Any] | None = None,
    layouts: Sequence[str] = tuple(LAYOUTS),
    batched: bool = False,
    same_bits: bool = False,
    vulkan_dtypes: Sequence[str] = ALL,
    errors: Sequence[tuple[Any, str, str]] = (),
    bench: Sequence[Bench] = (),
    **sweep: Any,
) -> type:
    """A class of tests for one operator; bind it to a name that starts with Test.

    op, reference   vkml's function (or its dotted name) and NumPy's
    torch           a name in torch or torch.nn.functional, or f(torch, *tensors, **kwargs)
    shapes          one shape, or one tuple of shapes, per case
    domain          where inputs are drawn from, one pair or one per input
    inputs          f(rng, *shapes, **kwargs) makes them instead: float arrays take the tested dtype, others keep theirs
    result          the result's dtype: a name, or a function of the tested dtype
    second          second derivatives too;  grad_tolerance: relative to the largest gradient, in f32
    grad_floor      size of the terms whose difference a gradient is: rows of one or two elements are held to it
    batched         row 0 has the same bits whether or not other rows follow
    same_bits       CPU and Vulkan give the same bits
    vulkan_dtypes   what Vulkan takes; it must refuse the other dtypes with NotImplementedError_
    errors          (call(device), error class, regular expression of its text)
    """
    label = name or (op if isinstance(op, str) else op.__name__)
    cases = OpCases(
        name=label, op=resolve(op), reference=reference, torch=torch, shapes=shapes, dtypes=dtypes, tolerance=tolerance,
        domains=domain if isinstance(domain, list) else [domain], make=inputs,
        result=(lambda _: result) if isinstance(result, str) else result,
        gradients=gradients and any(d in FLOATS for d in dtypes), second=second, grad_tolerance=grad_tolerance,
        grad_floor=grad_floor, grad_shapes=grad_shapes if grad_shapes is not None else small(shapes),
        layouts=layouts, batched=batched, same_bits=same_bits, vulkan_dtypes=vulkan_dtypes, errors=errors, bench=bench,
        sweep={k: v if isinstance(v, list) else [v] for k, v in sweep.items()},
    )  # fmt: skip
    declared.append(cases)
    return test_class(cases)


def small(shapes: Sequence[Any]) -> list[Any]:
    """The cases of at most 64 elements: finite differences cost two evaluations per element."""

    def elements(case: Any) -> int:
        return sum(int(np.prod(s)) for s in (case if case and isinstance(case[0], tuple) else (case,)))

    return [case for case in shapes if elements(case) <= 64]


def test_class(cases: OpCases) -> type:
    float_dtypes = [d for d in cases.dtypes if d in FLOATS]
    each_dtype = pytest.mark.parametrize("dtype", cases.dtypes)

    @each_dtype
    def test_values(self: Any, device: str, dtype: str) -> None:
        op_checks.values(cases, device, dtype)

    @each_dtype
    def test_repeats_bitwise(self: Any, device: str, dtype: str) -> None:
        op_checks.repeats(cases, device, dtype)

    @pytest.mark.parametrize("layout", cases.layouts)
    def test_layout(self: Any, device: str, layout: str) -> None:
        for dtype in dict.fromkeys((cases.dtypes[0], cases.dtypes[-1], *float_dtypes[1:2])):
            op_checks.layout(cases, device, dtype, layout)

    @pytest.mark.parametrize("dtype", float_dtypes)
    def test_gradients(self: Any, device: str, dtype: str) -> None:
        op_checks.gradients(cases, device, dtype)

    def test_finite_differences(self: Any) -> None:
        op_checks.finite_differences(cases)

    def test_second_derivatives(self: Any, device: str) -> None:
        op_checks.second_derivatives(cases, device)

    @pytest.mark.torch
    @each_dtype
    def test_against_torch(self: Any, device: str, dtype: str) -> None:
        op_checks.against_torch(cases, device, dtype)

    @each_dtype
    def test_cpu_and_vulkan_bits(self: Any, vulkan: str, dtype: str) -> None:
        op_checks.same_on_both(cases, vulkan, dtype)

    @pytest.mark.parametrize(
        ("call", "error", "text"), cases.errors, ids=[f"{e[1]}-{i}" for i, e in enumerate(cases.errors)]
    )
    def test_error(self: Any, device: str, call: Any, error: str, text: str) -> None:
        op_checks.error(call, device, error, text)

    tests: dict[str, Any] = {"test_values": test_values, "test_repeats_bitwise": test_repeats_bitwise, "cases": cases}
    if cases.layouts:
        tests["test_layout"] = test_layout
    if cases.gradients:
        tests |= {"test_gradients": test_gradients, "test_finite_differences": test_finite_differences}
    if cases.second:
        tests["test_second_derivatives"] = test_second_derivatives
    if cases.torch:
        tests["test_against_torch"] = test_against_torch
    if cases.same_bits:
        tests["test_cpu_and_vulkan_bits"] = test_cpu_and_vulkan_bits
    if cases.errors:
        tests["test_error"] = test_error
    return type(f"Test_{cases.name}", (), tests)


test_class.__test__ = False  # type: ignore[attr-defined]

"""The checks behind op_cases: each runs every shape and setting of a declaration and names the one that fails."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers import (
    EPS,
    assert_same_bits,
    assert_within,
    bits,
    dtype_name,
    is_float,
    laid_out,
    rounded,
    spacing,
    tensor,
    to_numpy,
)  # fmt: skip

import vkml

if TYPE_CHECKING:
    from op_cases import OpCases, Tolerance

Kwargs = dict[str, Any]
STEP = 1e-6  # of finite differences in f64


@contextlib.contextmanager
def named(cases: OpCases, shapes: Any, kwargs: Kwargs) -> Iterator[None]:
    """Adds the shape and the arguments to whatever fails inside."""
    try:
        yield
    except Exception as problem:
        problem.args = (f"{cases.name} {' '.join(map(str, shapes))} {kwargs}: {problem}", *problem.args[1:])
        raise


def dtype_of(array: np.ndarray, dtype: str) -> str:
    """Float inputs take the tested dtype; integer and bool arrays that `inputs=` made keep their own."""
    return dtype if array.dtype.kind == "f" else str(array.dtype)


def tensors(arrays: list[np.ndarray], dtype: str, device: str, requires_grad: bool = False) -> list[vkml.Tensor]:
    return [
        tensor(a, dtype_of(a, dtype), device, requires_grad and a.dtype.kind == "f" and is_float(dtype)) for a in arrays
    ]


def held(arrays: list[np.ndarray], dtype: str) -> list[np.ndarray]:
    return [rounded(a, dtype_of(a, dtype)) for a in arrays]


def outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def refused(cases: OpCases, device: str, dtype: str) -> bool:
    """True where the device has no kernel for the dtype: values() checks that the operator says so."""
    if device == "cpu":
        return False
    lacks_f64 = dtype == "float64" and str(vkml.device_info(device).get("f64", True)) in ("False", "0", "no")
    return lacks_f64 or dtype not in cases.vulkan_dtypes


def allowed(
    t: Tolerance, expected: np.ndarray, dtype: str, device: str, arrays: list[np.ndarray], kwargs: Kwargs
) -> Any:
    """The absolute error permitted at each element."""
    if not is_float(dtype):
        return 0.0
    wide = "float64" if dtype == "float64" else "float32"
    eps = EPS[wide]
    scale = eps / EPS["float32"]
    magnitude = np.abs(np.nan_to_num(expected, nan=0.0, posinf=0.0, neginf=0.0))
    if t.exact:
        return 0.0 if dtype != "float64" else 2 * spacing(expected, dtype)
    error = np.maximum(t.ulp * spacing(expected, wide), t.rel * scale * magnitude) + t.abs * scale
    if t.row:
        error = error + t.row * scale * magnitude.max(initial=0.0)
    if t.bound:
        error = error + t.bound(eps, *arrays, **kwargs)
    if dtype == "float64":
        error = error + 16 * spacing(expected, dtype)  # the reference rounds too
    elif dtype != "float32":
        error = error + spacing(expected, dtype)
    if device != "cpu":
        error = error + 2.0**-126  # a device may flush subnormal results
    return error


def compare(cases: OpCases, got: Any, arrays: list[np.ndarray], kwargs: Kwargs, dtype: str, device: str) -> None:
    assert cases.reference is not None
    with np.errstate(all="ignore"):
        expected = outputs(cases.reference(*arrays, **kwargs))
    results = outputs(got)
    assert len(results) == len(expected), f"{len(results)} results, expected {len(expected)}"
    for y, reference in zip(results, expected, strict=True):
        reference = np.asarray(reference)
        assert str(y.device) == device
        if reference.dtype.kind == "f":
            assert dtype_name(y) == cases.result(dtype), f"dtype {dtype_name(y)}, expected {cases.result(dtype)}"
        limit = allowed(cases.tolerance, reference, dtype_name(y), device, arrays, kwargs)
        assert_within(to_numpy(y), rounded(reference, dtype_name(y)), limit, f"{dtype} on {device}")


def values(cases: OpCases, device: str, dtype: str) -> None:
    """Against the NumPy reference on the rounded inputs, which must stay as they were."""
    for shapes, kwargs in cases.runs():
        with named(cases, shapes, kwargs):
            arrays = cases.inputs(shapes, kwargs, "values", dtype)
            xs = tensors(arrays, dtype, device)
            if refused(cases, device, dtype):
                with pytest.raises(vkml.NotImplementedError_):
                    cases.op(*xs, **kwargs)
                continue
            before = [bits(x) for x in xs]
            got = cases.op(*xs, **kwargs)
            compare(cases, got, held(arrays, dtype), kwargs, dtype, device)
            assert before == [bits(x) for x in xs], "an input was written"


def layout(cases: OpCases, device: str, dtype: str, how: str) -> None:
    """Values and gradients of inputs that lie otherwise in memory."""
    if refused(cases, device, dtype):
        return
    for shapes, kwargs in cases.runs():
        with named(cases, shapes, kwargs):
            arrays = cases.inputs(shapes, kwargs, "layout", dtype)
            laid = [laid_out(how, a, dtype_of(a, dtype), device) for a in arrays]
            xs, shown = [x for x, _ in laid], [a for _, a in laid]
            compare(cases, cases.op(*xs, **kwargs), shown, kwargs, dtype, device)
            if cases.gradients and dtype == "float32" and case_is_small(shapes):
                strided = [x.requires_grad_() if a.dtype.kind == "f" else x for x, a in laid]
                same_gradients(cases, strided, tensors(shown, dtype, device, True), kwargs, dtype)


def case_is_small(shapes: Any) -> bool:
    return sum(int(np.prod(s)) for s in shapes) <= 4096


def same_gradients(cases: OpCases, a: list[Any], b: list[Any], kwargs: Kwargs, dtype: str) -> None:
    for x, first, second in zip(a, backward(cases, a, kwargs), backward(cases, b, kwargs), strict=True):
        if x.requires_grad:
            close_gradient(cases, first, second, dtype, "against the packed copy")


def weights(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """What the result is summed with to make a scalar: different for every element, and exact in every float."""
    return np.random.default_rng(seed + 7).integers(-8, 9, shape) / 8


def loss_weights(ys: list[Any]) -> list[np.ndarray | None]:
    return [weights(tuple(y.shape), i) if is_float(dtype_name(y)) else None for i, y in enumerate(ys)]


def backward(cases: OpCases, xs: list[Any], kwargs: Kwargs) -> list[np.ndarray | None]:
    """Gradients of the weighted sum of all floating results, by vkml."""
    ys = outputs(cases.op(*xs, **kwargs))
    wanted = [x for x in xs if x.requires_grad]
    pairs = [(y, w) for y, w in zip(ys, loss_weights(ys), strict=True) if w is not None]
    gradients = vkml.grad(
        [y for y, _ in pairs], wanted, [tensor(w, dtype_name(y), str(y.device)) for y, w in pairs], allow_unused=True
    )
    found = iter(gradients)
    out: list[np.ndarray | None] = []
    for x in xs:
        g = next(found) if x.requires_grad else None
        if g is not None:
            assert tuple(g.shape) == tuple(x.shape), f"gradient of shape {tuple(g.shape)} for {tuple(x.shape)}"
            assert g.dtype == x.dtype, f"gradient of dtype {g.dtype} for {x.dtype}"
        out.append(None if g is None else to_numpy(g))
    return out


def close_gradient(cases: OpCases, got: Any, expected: Any, dtype: str, what: str) -> None:
    if got is None or expected is None:
        assert got is None and expected is None, f"gradient {what}: {got} and {expected}"
        return
    short = np.ndim(expected) > 0 and np.shape(expected)[-1] <= 2
    floor = cases.grad_floor if short else 0.0
    limit = cases.grad_tolerance * np.abs(np.nan_to_num(expected)).max(initial=floor)
    limit = limit * (EPS[dtype] / EPS["float32"] if dtype == "float64" else 1) + 2.0**-100
    if dtype in ("float16", "bfloat16"):  # composed gradients round between their steps
        limit = limit + 8 * EPS[dtype] * np.maximum(
            np.abs(expected), np.abs(np.nan_to_num(expected)).max(initial=0.0) / 4
        )
    assert_within(got, expected, limit, f"gradient {what}")


def gradients(cases: OpCases, device: str, dtype: str) -> None:
    """Against the CPU's f64 gradients, which finite_differences() has checked."""
    if refused(cases, device, dtype):
        return
    for shapes, kwargs in cases.runs(cases.grad_shapes):
        with named(cases, shapes, kwargs):
            arrays = held(cases.inputs(shapes, kwargs, "gradients", dtype), dtype)
            got = backward(cases, tensors(arrays, dtype, device, True), kwargs)
            oracle = backward(cases, tensors(arrays, "float64", "cpu", True), kwargs)
            for g, e in zip(got, oracle, strict=True):
                close_gradient(cases, g, e, dtype, f"in {dtype} on {device} against f64")


def differences(f: Callable[[list[np.ndarray]], float], arrays: list[np.ndarray], which: int) -> np.ndarray:
    """Central differences of f with respect to every element of one array."""
    out = np.zeros(arrays[which].shape)
    for at in np.ndindex(*out.shape):
        moved = []
        for sign in (1, -1):
            changed = [a.copy() for a in arrays]
            changed[which][at] += sign * STEP
            moved.append(f(changed))
        out[at] = (moved[0] - moved[1]) / (2 * STEP)
    return out


def finite_differences(cases: OpCases) -> None:
    """The CPU's f64 gradients against central differences of the NumPy reference."""
    assert cases.reference is not None
    reference = cases.reference
    for shapes, kwargs in cases.runs(cases.grad_shapes):
        with named(cases, shapes, kwargs):
            arrays = cases.inputs(shapes, kwargs, "gradients", "float64")
            xs = tensors(arrays, "float64", "cpu", True)
            sums = loss_weights(outputs(cases.op(*xs, **kwargs)))

            def loss(at: list[np.ndarray], kwargs: Kwargs = kwargs, sums: list[Any] = sums) -> float:
                ys = outputs(reference(*at, **kwargs))
                return float(sum(np.sum(np.asarray(y) * w) for y, w in zip(ys, sums, strict=True) if w is not None))

            for i, g in enumerate(backward(cases, xs, kwargs)):
                if g is not None:
                    expected = differences(loss, arrays, i)
                    scale = max(1.0, np.abs(expected).max(initial=0.0))
                    assert_within(g, expected, 2e-6 * scale, f"gradient {i} against finite differences")


def second_derivatives(cases: OpCases, device: str) -> None:
    """grad of grad on the device in f32, against central differences of the CPU's f64 gradient."""
    for shapes, kwargs in cases.runs(cases.grad_shapes):
        with named(cases, shapes, kwargs):
            arrays = held(cases.inputs(shapes, kwargs, "gradients", "float32"), "float32")
            floating = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
            got = grad_of_grad(cases, arrays, kwargs, "float32", device)
            exact = grad_of_grad(cases, arrays, kwargs, "float64", "cpu")

            def first(at: list[np.ndarray], kwargs: Kwargs = kwargs) -> float:
                gs = backward(cases, tensors(at, "float64", "cpu", True), kwargs)
                return float(sum(np.sum(g * weights(g.shape, 100 + i)) for i, g in enumerate(gs) if g is not None))

            for i in floating:
                expected = differences(first, arrays, i)
                scale = max(1.0, np.abs(expected).max(initial=0.0))
                # An undefined gradient of a gradient is a zero one.
                wide = np.zeros(arrays[i].shape) if exact[i] is None else exact[i]
                narrow = np.zeros(arrays[i].shape) if got[i] is None else got[i]
                assert_within(wide, expected, 1e-5 * scale, f"second derivative {i} against finite differences")
                assert_within(
                    narrow, wide, 20 * cases.grad_tolerance * scale, f"second derivative {i} in f32 on {device}"
                )


def grad_of_grad(cases: OpCases, arrays: list[np.ndarray], kwargs: Kwargs, dtype: str, device: str) -> list[Any]:
    xs = tensors(arrays, dtype, device, True)
    wanted = [x for x in xs if x.requires_grad]
    ys = [y for y in outputs(cases.op(*xs, **kwargs)) if is_float(dtype_name(y))]
    seeds = [tensor(weights(tuple(y.shape), i), dtype, device) for i, y in enumerate(ys)]
    firsts = vkml.grad(ys, wanted, seeds, create_graph=True, allow_unused=True)
    at = [i for i, x in enumerate(xs) if x.requires_grad]
    pairs = [(g, tensor(weights(tuple(g.shape), 100 + i), dtype, device)) for i, g in zip(at, firsts, strict=True)
             if g is not None and g.requires_grad]  # fmt: skip
    out: list[Any] = [None] * len(xs)
    if pairs:
        seconds = vkml.grad([g for g, _ in pairs], wanted, [w for _, w in pairs], allow_unused=True)
        for i, g in zip(at, seconds, strict=True):
            out[i] = None if g is None else to_numpy(g)
    return out


def repeats(cases: OpCases, device: str, dtype: str) -> None:
    """The same bits again, and for the first row whatever rows follow."""
    if refused(cases, device, dtype):
        return
    for shapes, kwargs in cases.runs():
        with named(cases, shapes, kwargs):
            arrays = cases.inputs(shapes, kwargs, "values", dtype)
            first = outputs(cases.op(*tensors(arrays, dtype, device), **kwargs))
            again = outputs(cases.op(*tensors(arrays, dtype, device), **kwargs))
            for a, b in zip(first, again, strict=True):
                assert_same_bits(a, b, "two runs")
            if cases.batched and len(shapes[0]) > 1 and shapes[0][0] > 1 and kwargs.get("dim", -1) not in (0, None):
                one = outputs(cases.op(*tensors([a[:1] for a in arrays], dtype, device), **kwargs))
                for a, b in zip(first, one, strict=True):
                    assert_same_bits(a[:1], b, "a row alone and in its batch")


def same_on_both(cases: OpCases, vulkan: str, dtype: str) -> None:
    if refused(cases, vulkan, dtype):
        return
    for shapes, kwargs in cases.runs():
        with named(cases, shapes, kwargs):
            arrays = cases.inputs(shapes, kwargs, "values", dtype)
            results = [outputs(cases.op(*tensors(arrays, dtype, d), **kwargs)) for d in ("cpu", vulkan)]
            for a, b in zip(*results, strict=True):
                assert_same_bits(a, b, "CPU and Vulkan")


def torch_function(torch: Any, cases: OpCases) -> Callable[..., Any]:
    if callable(cases.torch):
        given = cases.torch
        return lambda *xs, **kwargs: given(torch, *xs, **kwargs)
    name = str(cases.torch)
    return getattr(torch, name) if hasattr(torch, name) else getattr(torch.nn.functional, name)


def against_torch(cases: OpCases, device: str, dtype: str) -> None:
    """Values, and gradients in f32 and f64, against PyTorch on the CPU in float64 (or the integer dtype itself)."""
    torch = pytest.importorskip("torch")
    if refused(cases, device, dtype):
        return
    function = torch_function(torch, cases)
    for shapes, kwargs in cases.runs():
        with named(cases, shapes, kwargs):
            arrays = held(cases.inputs(shapes, kwargs, "torch", dtype), dtype)
            peers = [torch.tensor(a) for a in arrays]
            wide = dtype in ("float32", "float64")
            if cases.gradients and wide:
                peers = [p.requires_grad_() if p.dtype.is_floating_point else p for p in peers]
            ys = outputs(function(*peers, **kwargs))
            xs = tensors(arrays, dtype, device, cases.gradients and wide)
            results = outputs(cases.op(*xs, **kwargs))
            assert len(results) == len(ys), f"{len(results)} results, torch has {len(ys)}"
            for got, y in zip(results, ys, strict=True):
                reference = y.detach().numpy()
                limit = allowed(cases.tolerance, reference, dtype_name(got), device, arrays, kwargs)
                assert_within(
                    to_numpy(got), rounded(reference, dtype_name(got)), limit, f"{dtype} on {device} against torch"
                )
            if cases.gradients and wide and case_is_small(shapes):
                against_torch_gradients(torch, cases, xs, peers, ys, kwargs, dtype)


def against_torch_gradients(
    torch: Any, cases: OpCases, xs: list[Any], peers: list[Any], ys: list[Any], kwargs: Kwargs, dtype: str
) -> None:
    pairs = [(y, torch.tensor(weights(tuple(y.shape), i))) for i, y in enumerate(ys) if y.requires_grad]
    wanted = [p for p in peers if p.requires_grad]
    expected = iter(torch.autograd.grad([y for y, _ in pairs], wanted, [w for _, w in pairs], allow_unused=True))
    for x, got in zip(xs, backward(cases, xs, kwargs), strict=True):
        if x.requires_grad:
            peer = next(expected)
            close_gradient(cases, got, None if peer is None else peer.numpy(), dtype, "against torch")


def error(call: Callable[[str], Any], device: str, name: str, text: str) -> None:
    """Raises the class that is named and says what the pattern asks for."""
    with pytest.raises(getattr(vkml, name)) as caught:
        for y in outputs(call(device)):
            to_numpy(y)
    assert isinstance(caught.value, vkml.Error)
    assert re.search(text, str(caught.value)), f"expected {text!r} in {str(caught.value)!r}"

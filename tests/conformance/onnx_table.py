"""How an ONNX operator reads in vkml: one line each. An adapter takes (inputs, attributes) and answers the outputs.

It raises Unmapped for a variant that vkml does not have; such cases are counted, never silently dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import vkml as V

Attributes = dict[str, Any]


class Unmapped(Exception):
    """A variant of a mapped operator that vkml does not have, and why."""


def ints(t: V.Tensor | None) -> list[int]:
    return [] if t is None else [int(i) for i in np.atleast_1d(t.numpy())]


def plain(op: Callable[..., Any]) -> Callable[..., Any]:
    """The same arguments in the same order, and no attributes."""
    return lambda x, a: op(*x)


def fold(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, a: functools.reduce(op, x)


def extremum(op: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: list[Any], a: Attributes) -> Any:
        if x[0].numel() == 0:
            raise Unmapped("extremum of nothing, which vkml refuses")
        return reduction(op)(x, a)

    return run


def reduction(op: Callable[..., Any], before: Any = None, after: Any = None) -> Callable[..., Any]:
    def run(x: list[Any], a: Attributes) -> Any:
        axes = ints(x[1]) if len(x) > 1 else []
        if not axes and a.get("noop_with_empty_axes"):
            return after(before(x[0])) if before and after else before(x[0]) if before else x[0]
        y = op(before(x[0]) if before else x[0], axes or None, bool(a.get("keepdims", 1)))
        return after(y) if after else y

    return run


def arg(op: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: list[Any], a: Attributes) -> Any:
        if a.get("select_last_index"):
            raise Unmapped("select_last_index")
        return op(x[0], a.get("axis", 0), bool(a.get("keepdims", 1)))

    return run


def divide(x: list[Any], a: Attributes) -> Any:
    if x[0].dtype.is_floating_point:
        return V.div(*x)
    if (x[0].numpy() < 0).any() or (x[1].numpy() < 0).any():
        raise Unmapped("integer division towards zero")
    return V.floor_divide(*x)


def remainder(x: list[Any], a: Attributes) -> Any:
    if a.get("fmod"):
        raise Unmapped("fmod")
    return V.remainder(*x)


def power(x: list[Any], a: Attributes) -> Any:
    return V.pow(*x).to(x[0].dtype)  # ONNX keeps the base's type


def clip(x: list[Any], a: Attributes) -> Any:
    low, high = (t.item() if t is not None else None for t in [*x[1:], None, None][:2])
    if low is None and high is None:
        raise Unmapped("neither bound")
    return V.clamp(x[0], low, high)


def swish(x: list[Any], a: Attributes) -> Any:
    return x[0] * V.sigmoid(x[0] * a.get("alpha", 1.0))


def gemm(x: list[Any], a: Attributes) -> Any:
    left = x[0].transpose(0, 1) if a.get("transA") else x[0]
    right = x[1].transpose(0, 1) if a.get("transB") else x[1]
    y = V.matmul(left, right) * a.get("alpha", 1.0)
    return y + x[2] * a.get("beta", 1.0) if len(x) > 2 else y


def scatter_elements(x: list[Any], a: Attributes) -> Any:
    if a.get("reduction") != b"add":
        raise Unmapped(f"reduction {a.get('reduction', b'none').decode()}")
    return V.scatter_add(x[0], a.get("axis", 0), wrapped(x[1], x[0].shape[a.get("axis", 0)]), x[2])


def wrapped(index: V.Tensor, extent: int) -> V.Tensor:
    """ONNX indices count from the end when negative; vkml's, as torch's, do not."""
    return V.tensor(np.where(index.numpy() < 0, index.numpy() + extent, index.numpy()), device=index.device)


def gather(x: list[Any], a: Attributes) -> Any:
    axis = a.get("axis", 0)
    index = wrapped(x[1], x[0].shape[axis])
    flat = V.index_select(x[0], axis, index.reshape(-1))
    return flat.reshape(*x[0].shape[:axis], *index.shape, *x[0].shape[axis:][1:])


def split(x: list[Any], a: Attributes) -> Any:
    axis = a.get("axis", 0)
    if len(x) > 1:
        return V.split(x[0], ints(x[1]), axis)
    parts = a.get("num_outputs") or a["outputs"]
    extent = x[0].shape[axis]
    size = -(-extent // parts)
    return V.split(x[0], [min(size, extent - i * size) for i in range(parts)], axis)


def cumsum(x: list[Any], a: Attributes) -> Any:
    axis = ints(x[1])[0]
    terms = V.flip(x[0], [axis]) if a.get("reverse") else x[0]
    y = V.cumsum(terms, axis)
    y = y - terms if a.get("exclusive") else y
    return V.flip(y, [axis]) if a.get("reverse") else y


def reshape(x: list[Any], a: Attributes) -> Any:
    shape = ints(x[1])
    if not a.get("allowzero"):
        shape = [x[0].shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return V.reshape(x[0], shape)


def flatten(x: list[Any], a: Attributes) -> Any:
    shape = tuple(x[0].shape)
    axis = a.get("axis", 1)
    return V.reshape(x[0], [int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))])


def expand(x: list[Any], a: Attributes) -> Any:
    return x[0].expand(*np.broadcast_shapes(tuple(x[0].shape), tuple(ints(x[1]))))


def slices(x: list[Any], a: Attributes) -> Any:
    starts, stops = ints(x[1]), ints(x[2])
    axes = ints(x[3]) if len(x) > 3 else list(range(len(starts)))
    steps = ints(x[4]) if len(x) > 4 else [1] * len(starts)
    if min(steps) < 1:
        raise Unmapped("negative step")
    key = [slice(None)] * len(x[0].shape)
    for axis, start, stop, step in zip(axes, starts, stops, steps, strict=True):
        key[axis] = slice(start, stop, step)
    return x[0][tuple(key)]


def trilu(x: list[Any], a: Attributes) -> Any:
    return (V.triu if a.get("upper", 1) else V.tril)(x[0], ints(x[1])[0] if len(x) > 1 else 0)


def topk(x: list[Any], a: Attributes) -> Any:
    return V.topk(x[0], ints(x[1])[0], a.get("axis", -1), bool(a.get("largest", 1)))


def cast(x: list[Any], a: Attributes) -> Any:
    return x[0].to(a["outputs_dtype"])


def cross_entropy(x: list[Any], a: Attributes) -> Any:
    if a["outputs"] > 1:
        raise Unmapped("log_prob as a second output")
    word = a.get("reduction", b"mean").decode()
    return V.cross_entropy(x[0], x[1], *x[2:], ignore_index=a.get("ignore_index", -100), reduction=word)


def softmax(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, a: op(x[0], a.get("axis", -1))


def square(x: Any) -> Any:
    return x * x


def vk(name: str) -> Callable[..., Any]:
    """A vkml function by name, looked up when it is called."""
    return lambda *args: functools.reduce(getattr, name.split("."), V)(*args)


UNARY = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Log": "log",
    "Neg": "neg", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign",
    "Sin": "sin", "Softplus": "softplus", "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip
BINARY = {
    "Add": "add", "Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less",
    "LessOrEqual": "less_equal", "MatMul": "matmul", "Mul": "mul", "Sub": "sub",
}  # fmt: skip

TABLE: dict[str, Callable[[list[Any], Attributes], Any]] = {
    **{onnx: plain(vk(name)) for onnx, name in (UNARY | BINARY).items()},
    "ArgMax": arg(vk("argmax")),
    "ArgMin": arg(vk("argmin")),
    "Cast": cast,
    "Clip": clip,
    "Concat": lambda x, a: V.cat(x, a["axis"]),
    "CumSum": cumsum,
    "Div": divide,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": lambda x, a: V.gather(x[0], a.get("axis", 0), wrapped(x[1], x[0].shape[a.get("axis", 0)])),
    "Gelu": lambda x, a: V.gelu(x[0], a.get("approximate", b"none").decode()),
    "Gemm": gemm,
    "Identity": lambda x, a: x[0].clone(),
    "LogSoftmax": softmax(vk("log_softmax")),
    "Max": fold(vk("maximum")),
    "Mean": lambda x, a: functools.reduce(V.add, x) / len(x),
    "Min": fold(vk("minimum")),
    "Mod": remainder,
    "Pow": power,
    "ReduceL1": reduction(vk("sum"), before=vk("abs")),
    "ReduceL2": reduction(vk("sum"), before=square, after=vk("sqrt")),
    "ReduceLogSum": reduction(vk("sum"), after=vk("log")),
    "ReduceMax": extremum(vk("amax")),
    "ReduceMean": reduction(vk("mean")),
    "ReduceMin": extremum(vk("amin")),
    "ReduceProd": reduction(vk("prod")),
    "ReduceSum": reduction(vk("sum")),
    "ReduceSumSquare": reduction(vk("sum"), before=square),
    "Reshape": reshape,
    "ScatterElements": scatter_elements,
    "Slice": slices,
    "Softmax": softmax(vk("softmax")),
    "SoftmaxCrossEntropyLoss": cross_entropy,
    "Split": split,
    "Squeeze": lambda x, a: V.squeeze(x[0], ints(x[1])) if len(x) > 1 else V.squeeze(x[0]),
    "Sum": fold(vk("add")),
    "Swish": swish,
    "TopK": topk,
    "Transpose": lambda x, a: x[0].permute(*a.get("perm", range(len(x[0].shape))[::-1])),
    "Trilu": trilu,
    "Unsqueeze": lambda x, a: functools.reduce(V.unsqueeze, sorted_axes(x[0], ints(x[1])), x[0]),
    "Where": plain(vk("where")),
}


def sorted_axes(t: V.Tensor, axes: list[int]) -> list[int]:
    rank = len(t.shape) + len(axes)
    return sorted(axis % rank for axis in axes)

"""Gradient modes, gradients of functions, and gradients written in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor

__all__ = ["Function", "enable_grad", "grad", "gradcheck", "gradgradcheck", "no_grad", "set_grad_enabled"]


class _GradMode:
    """Context manager and decorator; may be nested and used again."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._previous: list[bool] = []

    def __enter__(self):
        self._previous.append(_core.is_grad_enabled())
        _core._set_grad_enabled(self._enabled)
        return self

    def __exit__(self, *exception: object) -> None:
        _core._set_grad_enabled(self._previous.pop())

    def __call__(self, function: Callable) -> Callable:
        if inspect.isgeneratorfunction(function):
            raise _core.Error(f"{type(self).__name__}: expected a plain function to decorate, got a generator function")

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with _GradMode(self._enabled):
                return function(*args, **kwargs)

        return wrapped


class no_grad(_GradMode):
    """Operators inside are not recorded, and intermediates are freed as soon as they are used.

    Examples
    --------
    >>> x = vkml.ones(2, requires_grad=True)
    >>> with vkml.no_grad():
    ...     y = x.detach().clone()
    >>> y.requires_grad
    False
    """

    def __new__(cls, function: Callable | None = None):
        self = super().__new__(cls)
        if function is None:
            return self
        _GradMode.__init__(self, False)
        return self(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Operators inside are recorded, also within no_grad()."""

    def __new__(cls, function: Callable | None = None):
        self = super().__new__(cls)
        if function is None:
            return self
        _GradMode.__init__(self, True)
        return self(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Switches recording at once; as a context manager the old mode comes back at the end."""

    def __init__(self, enabled: bool) -> None:
        super().__init__(bool(enabled))
        self._before = _core.is_grad_enabled()
        _core._set_grad_enabled(bool(enabled))

    def __enter__(self):
        self._previous.append(self._before)
        _core._set_grad_enabled(self._enabled)
        return self

    def __call__(self, function: Callable) -> Callable:
        _core._set_grad_enabled(self._before)
        return super().__call__(function)


def _as_list(x: Any) -> list:
    return [x] if isinstance(x, Tensor) or x is None else list(x)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs with respect to inputs; no tensor's `grad` changes.

    Parameters
    ----------
    grad_outputs : optional
        Weights of the outputs' elements; may be left out for outputs of one element.
    retain_graph : bool, optional
        Keep the graph for another backward; by default as create_graph.
    create_graph : bool
        Record the gradient itself, for higher orders.
    allow_unused : bool
        None for an input no output depends on, instead of an Error.

    Examples
    --------
    >>> x = vkml.tensor(3.0, requires_grad=True)
    >>> (dx,) = vkml.grad(x * x, x, create_graph=True)
    >>> (ddx,) = vkml.grad(dx, x)
    >>> dx.item(), ddx.item()
    (6.0, 2.0)
    """
    out = _as_list(outputs)
    weights = [] if grad_outputs is None else _as_list(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    return tuple(_core._grad(out, _as_list(inputs), weights, keep, create_graph, allow_unused))


class Function:
    """A function with a gradient of its own: subclass it, with static `forward(ctx, ...)` and `backward(ctx, *grads)`.

    `ctx.save_for_backward(*tensors)` keeps tensors, `ctx.saved_tensors` hands them out, `ctx.needs_input_grad` says
    which gradients are wanted. `backward` returns one gradient or None per argument of forward.

    Examples
    --------
    >>> class Double(vkml.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         return g * 2
    >>> x = vkml.ones(2, requires_grad=True)
    >>> Double.apply(x).backward(vkml.ones(2))
    >>> x.grad
    tensor([2., 2.])
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        ctx = _Context([isinstance(a, Tensor) and a.requires_grad for a in args])
        with no_grad():
            result = cls.forward(ctx, *args)
        single = isinstance(result, Tensor)
        outputs = [result] if single else list(result)
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]

        def run(grads: list) -> list:
            back = cls.backward(ctx, *grads)
            back = [back] if isinstance(back, Tensor) or back is None else list(back)
            if len(back) != len(args):
                raise _core.ShapeError(f"{cls.__name__}: backward: expected {len(args)} gradients, got {len(back)}")
            return [back[i] for i in places]

        made = _core._record(cls.__name__, outputs, [args[i] for i in places], run)
        return made[0] if single else tuple(made)


class _Context:
    def __init__(self, needs: list[bool]) -> None:
        self.needs_input_grad = tuple(needs)
        self.saved_tensors: tuple[Tensor, ...] = ()

    def save_for_backward(self, *tensors: Tensor) -> None:
        self.saved_tensors = tensors


# Checks ---------------------------------------------------------------------------------------------------------------


def _numeric(f: Callable, inputs: list[Tensor], i: int, eps: float) -> np.ndarray:
    """Rows: elements of input i. Columns: elements of the flattened outputs."""
    base = np.array(inputs[i].detach(), dtype=np.float64)
    rows = []
    for position in np.ndindex(base.shape):
        sides = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[position] += step
            x = _core.Tensor(_like(moved, inputs[i]))
            args = [x if j == i else inputs[j].detach() for j in range(len(inputs))]
            with no_grad():
                sides.append(np.concatenate([np.ravel(np.asarray(y)).astype(np.float64) for y in _as_list(f(*args))]))
        rows.append((sides[0] - sides[1]) / (2 * eps))
    return np.array(rows)


def _like(values: np.ndarray, t: Tensor) -> Tensor:
    from ._creation import tensor

    return tensor(values, dtype=t.dtype, device=t.device)


def _analytic(outputs: list[Tensor], x: Tensor) -> np.ndarray:
    columns = []
    for y in outputs:
        for k in range(y.numel()):
            weight = np.zeros(y.numel())
            weight[k] = 1
            (g,) = grad([y], [x], [_like(weight.reshape(y.shape), y)], retain_graph=True, allow_unused=True)
            columns.append(np.zeros(x.numel()) if g is None else np.ravel(np.asarray(g)).astype(np.float64))
    return np.array(columns).T.reshape(x.numel(), -1)


def gradcheck(
    f: Callable,
    inputs: Tensor | Sequence[Tensor],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compares the gradients of f with central differences; the inputs should be float64.

    Examples
    --------
    >>> x = vkml.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    >>> vkml.autograd.gradcheck(lambda x: x * x, x)
    True
    """
    args = _as_list(inputs)
    outputs = [y for y in _as_list(f(*args)) if y.requires_grad]
    if not outputs:
        raise _core.Error("gradcheck: expected an output that requires grad, got none")
    for i, x in enumerate(args):
        if not x.requires_grad:
            continue
        found = _analytic(outputs, x)
        expected = _numeric(lambda *a: [y for y in _as_list(f(*a)) if y.is_floating_point()], args, i, eps).reshape(
            found.shape
        )
        if not np.allclose(found, expected, rtol=rtol, atol=atol):
            if not raise_exception:
                return False
            worst = np.abs(found - expected).max()
            raise _core.Error(
                f"gradcheck: input {i}: expected the gradient {expected.tolist()}, got {found.tolist()} "
                f"(off by {worst:g})"
            )
    return True


def gradgradcheck(
    f: Callable, inputs: Tensor | Sequence[Tensor], eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3
) -> bool:
    """Compares second derivatives: gradcheck of the gradient of f, weighted with fixed numbers."""
    args = _as_list(inputs)
    generator = np.random.default_rng(0)
    weights = [_like(generator.standard_normal(y.shape), y) for y in _as_list(f(*args))]

    def first(*xs: Tensor) -> list[Tensor]:
        with enable_grad():
            leaves = [x if x.requires_grad else x.requires_grad_() for x in xs]
            wanted = [x for x, a in zip(leaves, args, strict=True) if a.requires_grad]
            return [
                g
                for g in grad(_as_list(f(*leaves)), wanted, weights, create_graph=True, allow_unused=True)
                if g is not None
            ]

    return gradcheck(first, args, eps, atol, rtol)

"""Functions with PyTorch's names that are compositions of operators: views, picks, joins and comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._core import Tensor
from ._creation import zeros

__all__ = [
    "allclose",
    "argwhere",
    "bincount",
    "diagonal",
    "hstack",
    "isclose",
    "meshgrid",
    "scatter",
    "take_along_dim",
    "unbind",
    "vstack",
]

F = TypeVar("F", bound=Callable[..., Any])


def _axis_for_dim(function: F) -> F:
    """Takes NumPy's `axis=` for `dim=`, as the operators do (python/src/calls.cpp)."""

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            if "dim" in kwargs:
                raise _core.DTypeError(f"{function.__name__}: dim: expected one value, got two")
            kwargs["dim"] = kwargs.pop("axis")
        return function(*args, **kwargs)

    return named  # type: ignore[return-value]


def _tensor(op: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise _core.DTypeError(
            f"{op}: {name}: expected a Tensor, got {'None' if value is None else type(value).__name__}"
        )


def _int(op: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _core.DTypeError(f"{op}: {name}: expected an int, got {type(value).__name__}")
    return int(value)


def _axis(op: str, dim: int, rank: int, name: str = "dim") -> int:
    rank, dim = max(rank, 1), _int(op, name, dim)
    if not -rank <= dim < rank:
        raise _core.IndexError_(f"{op}: expected {name} in [{-rank}, {rank - 1}], got {dim}")
    return dim % rank


@_axis_for_dim
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, as views without it.

    Raises
    ------
    ShapeError
        A tensor of rank 0.

    Examples
    --------
    >>> [row.tolist() for row in vkml.unbind(vkml.tensor([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """
    _tensor("unbind", "input", input)
    if input.ndim == 0:
        raise _core.ShapeError("unbind: expected rank >= 1, got ()")
    axis = _axis("unbind", dim, input.ndim)
    return tuple(_core.select(input, axis, i) for i in range(input.shape[axis]))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The elements input[..., i, i + offset] of two axes, as the last axis; a view.

    Raises
    ------
    ShapeError
        A rank below 2, or the same axis twice.

    Examples
    --------
    >>> x = vkml.arange(6).reshape(2, 3)
    >>> vkml.diagonal(x).tolist(), vkml.diagonal(x, 1).tolist(), vkml.diagonal(x, -1).tolist()
    ([0, 4], [1, 5], [3])
    """
    _tensor("diagonal", "input", input)
    offset = _int("diagonal", "offset", offset)
    if input.ndim < 2:
        raise _core.ShapeError(f"diagonal: expected rank >= 2, got {input.shape}")
    first, second = _axis("diagonal", dim1, input.ndim, "dim1"), _axis("diagonal", dim2, input.ndim, "dim2")
    if first == second:
        raise _core.ShapeError(f"diagonal: expected two axes, got {dim1} and {dim2}")
    return _core._diagonal(input, offset, first, second)


def _check_index(op: str, input: Tensor, index: Tensor, axis: int) -> None:
    _tensor(op, "index", index)
    if index.dtype not in (_core.int64, _core.int32):
        raise _core.DTypeError(f"{op}: index: expected int64 or int32, got {index.dtype}")
    if index.ndim != input.ndim:
        raise _core.ShapeError(f"{op}: index: expected rank {input.ndim}, got {index.shape}")
    if any(n > m for i, (n, m) in enumerate(zip(index.shape, input.shape, strict=True)) if i != axis):
        raise _core.ShapeError(
            f"{op}: index: expected extents within {input.shape} beside axis {axis}, got {index.shape}"
        )


@_axis_for_dim
def scatter(input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """A copy of input with out[i, index[i, j], k] = src[i, j, k] for dim = 1; of repeated places the last one wins.

    Parameters
    ----------
    dim : int
    index : int64 or int32 tensor of input's rank
        Beside dim no larger than input. Negative values count from the end.
    src : tensor or number
        At least as large as index along every axis, and of input's dtype; gradients reach input and src.

    Examples
    --------
    >>> vkml.scatter(vkml.zeros(2, 3), 1, vkml.tensor([[2], [0]]), 5.0)
    tensor([[0., 0., 5.],
            [5., 0., 0.]])
    """
    _tensor("scatter", "input", input)
    if not isinstance(src, (Tensor, int, float, np.number, np.bool_)):
        raise _core.DTypeError(f"scatter: src: expected a Tensor or a number, got {type(src).__name__}")
    axis = _axis("scatter", dim, input.ndim)
    _check_index("scatter", input, index, axis)
    if isinstance(src, Tensor):
        if src.dtype != input.dtype:
            raise _core.DTypeError(f"scatter: src: expected {input.dtype}, got {src.dtype}")
        if src.ndim != index.ndim or any(n < m for n, m in zip(src.shape, index.shape, strict=True)):
            raise _core.ShapeError(f"scatter: src: expected at least shape {index.shape}, got {src.shape}")
        src = src[tuple(slice(0, n) for n in index.shape)]
    out = input.clone()
    if index.numel() == 0:
        return out
    if input.ndim == 0:
        return (
            out.reshape(1).scatter(0, index.reshape(1), src.reshape(1) if isinstance(src, Tensor) else src).reshape(())
        )
    places: list[Tensor] = []
    for i, n in enumerate(index.shape):
        shape = [n if i == j else 1 for j in range(index.ndim)]
        places.append(index if i == axis else _core.arange(n, device=index.device).reshape(shape))
    out[tuple(places)] = src
    return out


@_axis_for_dim
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather() of input and indices that broadcast against each other beside dim; without dim, of the flattened two.

    Examples
    --------
    >>> x = vkml.tensor([[3, 1, 2], [6, 5, 4]])
    >>> vkml.take_along_dim(x, vkml.argsort(x, 1), 1).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    _tensor("take_along_dim", "input", input)
    _tensor("take_along_dim", "indices", indices)
    if dim is None:
        return _core.gather(input.flatten(), 0, indices.flatten())
    if indices.ndim != input.ndim:
        raise _core.ShapeError(f"take_along_dim: indices: expected rank {input.ndim}, got {indices.shape}")
    axis = _axis("take_along_dim", dim, input.ndim)
    shapes = [list(t.shape) for t in (input, indices)]
    for i, (n, m) in enumerate(zip(*shapes, strict=True)):
        if i != axis:
            if n != m and 1 not in (n, m):
                raise _core.ShapeError(
                    f"take_along_dim: expected shapes that broadcast beside axis {axis}, "
                    f"got {input.shape} and {indices.shape}"
                )
            shapes[0][i] = shapes[1][i] = m if n == 1 else n
    return _core.gather(input.expand(shapes[0]), axis, indices.expand(shapes[1]))


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, as nonzero() gives them: (count, rank) int64. Waits for the device.

    Examples
    --------
    >>> vkml.argwhere(vkml.tensor([[0, 3], [5, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    _tensor("argwhere", "input", input)
    return _core.nonzero(input)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer occurs, or the sum of its weights: one entry for 0 to the largest. Waits for the device.

    Parameters
    ----------
    input : integers >= 0 of rank 1
    weights : tensor of the same shape, optional
        float32 weights add up in float32, others in float64.
    minlength : int
        Least length of the result.

    Examples
    --------
    >>> vkml.bincount(vkml.tensor([1, 3, 1]), minlength=5)
    tensor([0, 2, 0, 1, 0])
    """
    _tensor("bincount", "input", input)
    if weights is not None:
        _tensor("bincount", "weights", weights)
    minlength = _int("bincount", "minlength", minlength)
    if input.is_floating_point() or input.dtype == _core.bool_:
        raise _core.DTypeError(f"bincount: expected integers, got {input.dtype}")
    if input.ndim != 1:
        raise _core.ShapeError(f"bincount: expected rank 1, got {input.shape}")
    if minlength < 0:
        raise _core.ShapeError(f"bincount: minlength: expected a number >= 0, got {minlength}")
    if weights is not None and weights.shape != input.shape:
        raise _core.ShapeError(f"bincount: weights: expected shape {input.shape}, got {weights.shape}")
    index = input.to(_core.int64)
    length = minlength
    if index.numel():
        low, high = int(index.min()), int(index.max())
        if low < 0:
            raise _core.ShapeError(f"bincount: expected integers >= 0, got {low}")
        length = max(length, high + 1)
    if weights is None:
        dtype, counted = _core.int64, _core.full(index.shape, 1, dtype=_core.int64, device=index.device)
    else:
        dtype = _core.float32 if weights.dtype == _core.float32 else _core.float64
        counted = weights.to(dtype)
    return _core.index_add(zeros(length, dtype=dtype, device=index.device), 0, index, counted)


# Joins and grids ------------------------------------------------------------------------------------------------------


def _tensors(op: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise _core.DTypeError(f"{op}: tensors: expected a sequence of Tensors, got {type(tensors).__name__}")
    found = list(tensors)
    if not found:
        raise _core.ShapeError(f"{op}: tensors: expected at least one, got none")
    for i, x in enumerate(found):
        if not isinstance(x, Tensor):
            raise _core.DTypeError(f"{op}: tensors: expected Tensors, got {type(x).__name__} at {i}")
    return found


def _one_device(op: str, tensors: Sequence[Tensor]) -> None:
    for x in tensors:
        if x.device != tensors[0].device:
            raise _core.DeviceError(f"{op}: expected tensors on one device, got {tensors[0].device} and {x.device}")


def _joined(op: str, parts: list[Tensor], axis: int) -> Tensor:
    _one_device(op, parts)
    first = parts[0].shape
    for x in parts[1:]:
        if len(x.shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, x.shape, strict=True)) if i != axis
        ):
            raise _core.ShapeError(f"{op}: expected equal extents beside axis {axis}, got {first} and {x.shape}")
    return _core.cat(parts, axis)


def vstack(tensors: Any) -> Tensor:
    """The tensors below one another, along axis 0; those of rank 0 and 1 are rows.

    Examples
    --------
    >>> vkml.vstack([vkml.tensor([1, 2]), vkml.tensor([[3, 4], [5, 6]])]).tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    rows = [x.reshape(1, -1) if x.ndim < 2 else x for x in _tensors("vstack", tensors)]
    return _joined("vstack", rows, 0)


def hstack(tensors: Any) -> Tensor:
    """The tensors beside one another, along axis 1; those of rank 0 and 1 along axis 0.

    Examples
    --------
    >>> vkml.hstack([vkml.tensor([1, 2]), vkml.tensor(3)]).tolist()
    [1, 2, 3]
    >>> vkml.hstack([vkml.tensor([[1], [2]]), vkml.tensor([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    parts = [x.reshape(1) if x.ndim == 0 else x for x in _tensors("hstack", tensors)]
    return _joined("hstack", parts, 0 if parts[0].ndim == 1 else 1)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid, one tensor for each axis: views of the vectors given.

    Parameters
    ----------
    tensors : tensors of rank 0 or 1, or one sequence of them
        Of one dtype.
    indexing : "ij" or "xy"
        "ij" has axis i for tensor i; "xy", NumPy's default, swaps the first two axes.

    Examples
    --------
    >>> x, y = vkml.meshgrid(vkml.tensor([1, 2, 3]), vkml.tensor([4, 5]), indexing="xy")
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]])
    """
    given = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    vectors = _tensors("meshgrid", given)
    if indexing not in ("ij", "xy"):
        raise _core.ShapeError(f'meshgrid: indexing: expected "ij" or "xy", got {indexing!r:.40}')
    for x in vectors:
        if x.ndim > 1:
            raise _core.ShapeError(f"meshgrid: expected tensors of rank 0 or 1, got {x.shape}")
        if x.dtype != vectors[0].dtype:
            raise _core.DTypeError(f"meshgrid: expected one dtype, got {vectors[0].dtype} and {x.dtype}")
    _one_device("meshgrid", vectors)
    if len(vectors) > 8:
        raise _core.ShapeError(f"meshgrid: expected at most 8 tensors, got {len(vectors)}")
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    shape = [0] * len(axes)
    for x, axis in zip(vectors, axes, strict=True):
        shape[axis] = x.numel()
    grids = []
    for x, axis in zip(vectors, axes, strict=True):
        grids.append(x.reshape([-1 if i == axis else 1 for i in range(len(shape))]).expand(shape))
    return tuple(grids)


# Comparisons ----------------------------------------------------------------------------------------------------------


def _close(op: str, input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    _tensor(op, "input", input)
    _tensor(op, "other", other)
    for name, value in (("rtol", rtol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise _core.DTypeError(f"{op}: {name}: expected a float, got {type(value).__name__}")
        if not value >= 0:
            raise _core.ShapeError(f"{op}: {name}: expected a number >= 0, got {value!r:.40}")
    if not isinstance(equal_nan, (bool, np.bool_)):
        raise _core.DTypeError(f"{op}: equal_nan: expected a bool, got {type(equal_nan).__name__}")
    _one_device(op, (input, other))
    pairs = zip(reversed(input.shape), reversed(other.shape), strict=False)
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        raise _core.ShapeError(f"{op}: expected shapes that broadcast, got {input.shape} and {other.shape}")
    input, other = input.detach(), other.detach()
    close = _core.equal(input, other)
    if not (input.is_floating_point() or other.is_floating_point()):
        return close | _close_integers(input.to(_core.int64), other.to(_core.int64), rtol, atol)
    if equal_nan:
        close = close | (_core.isnan(input) & _core.isnan(other))
    wide = _core.float64 if _core.float64 in (input.dtype, other.dtype) else _core.float32
    a, b = input.to(wide), other.to(wide)
    error = (a - b).abs()
    return close | (_core.isfinite(error) & (error <= b.abs() * rtol + atol))


def _close_integers(a: Tensor, b: Tensor, rtol: float, atol: float) -> Tensor:
    """|a - b| <= atol + rtol * |b| of int64: the differences are exact, the tolerances float32."""
    error = _core.maximum(a, b) - _core.minimum(a, b)
    bound = b.to(_core.float32).abs() * rtol + atol
    near = (error >= 0) & ((error <= bound.clamp(max=2.0**63 - 2.0**39).to(_core.int64)) | (bound >= 2.0**63))
    # From 2^63 on they have wrapped around.
    return near | ((error < 0) & (error.to(_core.float32) + 2.0**64 <= bound))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |input - other| <= atol + rtol * |other|, elementwise, broadcast; equal infinities are close.

    Parameters
    ----------
    rtol, atol : float
        >= 0.
    equal_nan : bool
        Whether two NaNs are close.

    Examples
    --------
    >>> vkml.isclose(vkml.tensor([1.0, 2.0]), vkml.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """
    return _close("isclose", input, other, rtol, atol, equal_nan)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose() holds everywhere, a Python bool. Waits for the device.

    Examples
    --------
    >>> vkml.allclose(vkml.tensor([1.0, 2.0]), vkml.tensor([1.000001, 2.0]))
    True
    """
    return bool(_close("allclose", input, other, rtol, atol, equal_nan).all().item())

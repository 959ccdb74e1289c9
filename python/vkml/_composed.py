"""Functions with PyTorch's names that are compositions of operators: views, picks and einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor
from ._creation import zeros

__all__ = [
    "argwhere",
    "bincount",
    "diagonal",
    "einsum",
    "scatter",
    "take_along_dim",
    "unbind",
]


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


# einsum ---------------------------------------------------------------------------------------------------------------


def _letters(equation: str, operands: Sequence[Tensor]) -> tuple[list[str], str]:
    """The labels of every operand's axes and of the result; the axes of an Ellipsis get capitals that nobody uses."""

    def wrong(text: str) -> Exception:
        return _core.ShapeError(f"einsum: {text}, got {equation!r}")

    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise wrong(f"expected {len(operands)} terms for as many operands")
    if not all(c.isalpha() and c.isascii() for term in (*terms, output) for c in term.replace("...", "", 1)):
        raise wrong("expected letters, commas, Ellipses and one arrow")
    spare = [chr(c) for c in (*range(65, 91), *range(97, 123)) if chr(c) not in text]
    hidden = []
    for term, x in zip(terms, operands, strict=True):
        named = len(term.replace("...", "", 1))
        if x.ndim < named or (x.ndim > named and "..." not in term):
            raise wrong(f"expected a label for every axis of shape {x.shape}")
        hidden.append(x.ndim - named if "..." in term else 0)
    widest = max(hidden, default=0)
    if widest > len(spare):
        raise wrong("expected fewer letters")
    extra = "".join(spare[:widest])
    full = [term.replace("...", extra[widest - n :]) for term, n in zip(terms, hidden, strict=True)]
    if not arrow:
        counted = "".join(full)
        return full, extra + "".join(sorted(c for c in set(counted) - set(extra) if counted.count(c) == 1))
    output = output.replace("...", extra)
    if len(set(output)) != len(output) or not set(output) <= set("".join(full)):
        raise wrong("expected each label of the result once, and in some operand")
    return full, output


def _distinct(labels: str, x: Tensor) -> tuple[str, Tensor]:
    """Repeated labels become the diagonal of their axes."""
    for c in sorted(set(labels)):
        while labels.count(c) > 1:
            i, j = labels.index(c), labels.rindex(c)
            if x.shape[i] != x.shape[j]:
                raise _core.ShapeError(f"einsum: expected equal extents for the label {c!r}, got {x.shape}")
            x = diagonal(x, 0, i, j)
            labels = "".join(label for k, label in enumerate(labels) if k not in (i, j)) + c
    return labels, x


def _summed(labels: str, x: Tensor, kept: set[str]) -> tuple[str, Tensor]:
    """Sums over the axes that nobody needs."""
    dropped = [i for i, c in enumerate(labels) if c not in kept]
    return "".join(c for c in labels if c in kept), x.sum(dropped) if dropped else x


def _ordered(labels: str, x: Tensor, wanted: str, sizes: dict[str, int]) -> Tensor:
    """x with its axes in this order, axes of extent 1 where it lacks one, and broadcast to the sizes given."""
    x = x.permute([labels.index(c) for c in wanted if c in labels])
    shape = [x.shape[[d for d in wanted if d in labels].index(c)] if c in labels else 1 for c in wanted]
    return x.reshape(shape).expand([sizes.get(c, n) for c, n in zip(wanted, shape, strict=True)])


def _contract(a: tuple[str, Tensor], b: tuple[str, Tensor], kept: set[str]) -> tuple[str, Tensor]:
    """Two operands as one batched matrix product, summed over the labels that only they have."""
    (left, x), (right, y) = _summed(*a, kept | set(b[0])), _summed(*b, kept | set(a[0]))
    shared = [c for c in left if c in right]
    sizes = {c: max(x.shape[left.index(c)], y.shape[right.index(c)]) for c in shared}
    sizes |= {c: 0 for c in shared if 0 in (x.shape[left.index(c)], y.shape[right.index(c)])}
    batch, inner = ("".join(c for c in shared if (c in kept) == both) for both in (True, False))
    rows, columns = ("".join(c for c in own if c not in shared) for own in (left, right))
    x, y = _ordered(left, x, batch + rows + inner, sizes), _ordered(right, y, batch + inner + columns, sizes)
    b_shape, m = x.shape[: len(batch)], x.shape[len(batch) : len(batch) + len(rows)]
    n, k = y.shape[len(batch) + len(inner) :], math.prod(sizes[c] for c in inner)
    if not inner:  # an outer product needs no sums
        z = x.reshape(*b_shape, *m, *(1,) * len(n)) * y.reshape(*b_shape, *(1,) * len(m), *n)
        return batch + rows + columns, z
    z = x.reshape(*b_shape, math.prod(m), k) @ y.reshape(*b_shape, k, math.prod(n))
    return batch + rows + columns, z.reshape(*b_shape, *m, *n)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation, "ij,jk->ik": a label that the result lacks is summed over.

    Operands are taken from left to right, each as one batched matrix product with what came before, so the order
    decides the cost. `...` stands for axes that broadcast; without `->` the result has the labels that occur once, in
    the alphabet's order; a label twice in one operand is a diagonal.

    Raises
    ------
    ShapeError
        An equation that does not fit the operands, or extents that differ.

    Examples
    --------
    >>> a, b = vkml.arange(6.0).reshape(2, 3), vkml.ones(3, 2)
    >>> vkml.einsum("ij,jk->ik", a, b).tolist()
    [[3.0, 3.0], [12.0, 12.0]]
    >>> vkml.einsum("ii->", vkml.eye(3)).item()
    3.0
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str) or not all(isinstance(x, Tensor) for x in operands) or not operands:
        raise _core.DTypeError(
            f"einsum: expected a text and tensors, got {equation!r:.60} and {len(operands)} operands"
        )
    terms, output = _letters(equation, operands)
    pairs = [_distinct(labels, x) for labels, x in zip(terms, operands, strict=True)]
    extents: dict[str, int] = {}
    for labels, x in pairs:
        for c, n in zip(labels, x.shape, strict=True):
            if extents.setdefault(c, n) != n and 1 not in (extents[c], n):
                raise _core.ShapeError(f"einsum: expected equal extents for the label {c!r}, got {extents[c]} and {n}")
            extents[c] = n if extents[c] == 1 else extents[c]
    current = pairs[0]
    for i, following in enumerate(pairs[1:], 1):
        current = _contract(current, following, set(output).union(*(labels for labels, _ in pairs[i + 1 :])))
    labels, x = _summed(*current, set(output))
    return x.permute([labels.index(c) for c in output])

"""Sums of products in Einstein's notation, as batched matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _core
from ._composed import diagonal
from ._core import Tensor

__all__ = ["einsum"]


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

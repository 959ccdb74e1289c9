"""Whether a dataset takes an array of indices or one index at a time, and batches of either."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["batch_of", "takes_arrays"]


def _columns(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _collate(items: list[Any]) -> Any:
    if isinstance(items[0], (tuple, list)):
        return tuple(np.stack([np.asarray(x) for x in column]) for column in zip(*items, strict=True))
    return np.stack([np.asarray(x) for x in items])


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True))
    return bool(np.array_equal(a, b))


def _count(item: Any) -> int:
    """How many items to ask for at once: a number that no size of the item could be taken for."""
    columns = _columns(item)
    sizes = {len(columns), *(n for x in columns for n in np.shape(x))}
    return next(k for k in range(2, len(sizes) + 3) if k not in sizes)


def takes_arrays(dataset: Any, indices: np.ndarray) -> bool:
    """Asks for items of `indices` at once and one at a time: True if the answers agree.

    Whatever the dataset raises for an array means one at a time. One that refuses a single index takes arrays. Random
    items disagree and are read one at a time, which any dataset that answers a single index bears.
    """
    told = getattr(dataset, "takes_arrays", None)
    if isinstance(told, bool):
        return told
    try:
        dataset[indices[[0, 0]]]
    except Exception:
        return False
    try:
        first = dataset[int(indices[0])]
    except Exception:
        return True
    try:
        chosen = np.resize(indices, _count(first))
        many = dataset[chosen]
        single = _collate([first, *(dataset[int(i)] for i in chosen[1:])])
        if isinstance(many, (tuple, list)) != isinstance(single, tuple) or len(many) != len(single):
            return False
        return all(_same(a, b) for a, b in zip(_columns(many), _columns(single), strict=True))
    except Exception:
        return False


def batch_of(dataset: Any, indices: np.ndarray, arrays: bool) -> Any:
    return dataset[indices] if arrays else _collate([dataset[int(i)] for i in indices])

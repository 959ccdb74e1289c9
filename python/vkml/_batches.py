"""Whether a dataset takes an array of indices or one index at a time, and batches of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core
from ._core import Tensor
from ._creation import tensor

__all__ = ["batch_of", "collate", "items_of", "takes_arrays", "with_tensors"]


def _columns(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _map_items(items: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """join() of each entry of mappings or tuples of one form, in that form."""
    first = items[0]
    if isinstance(first, Mapping):
        if not all(isinstance(x, Mapping) and x.keys() == first.keys() for x in items):
            raise _core.ShapeError(f"collate: expected dicts with the keys {list(first)}, got others")
        return {key: join([x[key] for x in items]) for key in first}
    if not all(isinstance(x, (tuple, list)) and len(x) == len(first) for x in items):
        raise _core.ShapeError(f"collate: expected tuples of {len(first)}, got others")
    joined = [join(list(column)) for column in zip(*items, strict=True)]
    return type(first)(*joined) if hasattr(first, "_fields") else tuple(joined)


def _array(item: Any) -> np.ndarray:
    try:
        made = np.asarray(item)
    except Exception:  # a list of lists of several lengths
        made = np.empty((), object)
    if made.dtype.kind in "OUSV":
        raise _core.DTypeError(
            "collate: expected tensors, arrays, numbers, strings, and dicts and tuples of them, "
            f"got {item!r:.40} ({type(item).__name__})"
        )
    return made


def _stacked(items: list[Any]) -> Any:
    if isinstance(items[0], (Mapping, tuple)):
        return _map_items(items, _stacked)
    if isinstance(items[0], (str, bytes)):
        return list(items)
    if all(isinstance(x, Tensor) for x in items):
        parts: list[Any] = items
        stack: Callable = _core.stack
    else:
        parts, stack = [_array(x) for x in items], np.stack
    shapes = [tuple(x.shape) for x in parts]
    for shape in shapes:
        if shape != shapes[0]:
            raise _core.ShapeError(f"collate: expected items of one shape, got {shapes[0]} and {shape}")
    return stack(parts)


def collate(items: list[Any]) -> Any:
    """Items side by side: arrays of NumPy, stacked tensors, lists of strings, in the dicts and tuples they come in.

    An item that is a list is one of columns; a list inside it is data.
    """
    if not items:
        raise _core.ShapeError("collate: expected at least one item, got none")
    if isinstance(items[0], list):
        return _map_items(items, _stacked)
    return _stacked(items)


def with_tensors(batch: Any, device: Any, move: bool, everything: bool = True) -> Any:
    """The batch with its arrays as tensors on the device, where tensors go too if they shall move.

    Lists and numbers become tensors only if `everything` does; strings never.
    """

    def inner(value: Any) -> Any:
        return with_tensors(value, device, move, everything)

    if isinstance(batch, Tensor):
        return batch.to(device=device) if move else batch
    if isinstance(batch, Mapping):
        return {key: inner(value) for key, value in batch.items()}
    if isinstance(batch, tuple):
        made = [inner(value) for value in batch]
        return type(batch)(*made) if hasattr(batch, "_fields") else tuple(made)
    if not everything and isinstance(batch, list):
        return [inner(value) for value in batch]
    if isinstance(batch, (str, bytes)) or not (everything or isinstance(batch, (np.ndarray, np.generic))):
        return batch
    if isinstance(batch, list) and batch and isinstance(batch[0], (str, bytes)):
        return batch
    return tensor(batch, device=device)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (Mapping, tuple)) and isinstance(b, (Mapping, tuple)):
        return _alike(a, b)
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc" and b.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True))
    return bool(np.array_equal(a, b))


def _alike(many: Any, single: Any) -> bool:
    """Whether two batches have one form and the same values."""
    if isinstance(many, Mapping) or isinstance(single, Mapping):
        if not (isinstance(many, Mapping) and isinstance(single, Mapping)) or list(many) != list(single):
            return False
    elif isinstance(many, (tuple, list)) != isinstance(single, tuple) or len(many) != len(single):
        return False
    return all(_same(a, b) for a, b in zip(_columns(many), _columns(single), strict=True))


def _count(item: Any) -> int:
    """How many items to ask for at once: a number that no size of the item could be taken for."""
    columns = _columns(item)
    sizes = {len(columns), *(n for x in columns if not isinstance(x, Mapping) for n in np.shape(x))}
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
        return _alike(many, collate([first, *(dataset[int(i)] for i in chosen[1:])]))
    except Exception:
        return False


def items_of(dataset: Any, indices: np.ndarray) -> list[Any]:
    return [dataset[int(i)] for i in indices]


def batch_of(dataset: Any, indices: np.ndarray, arrays: bool) -> Any:
    """A batch as a tuple of its columns, or as the dict that the dataset makes."""
    batch = dataset[indices] if arrays else collate(items_of(dataset, indices))
    if isinstance(batch, (Mapping, tuple)):
        return batch
    return tuple(batch) if isinstance(batch, list) and not (batch and isinstance(batch[0], str)) else (batch,)

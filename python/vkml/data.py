"""Datasets, batches in an order that a seed fixes, and transforms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _core
from ._batches import batch_of, takes_arrays
from ._core import Tensor
from ._creation import tensor
from ._prefetch import ordered

__all__ = ["ArrayDataset", "Compose", "DataLoader", "Dataset", "RandomCrop", "RandomHorizontalFlip", "Subset", "split"]


class Dataset:
    """Base: `__len__`, and `__getitem__` of an array of indices (or of one index: its results are then collated).

    A class says which with `takes_arrays = True` or `False`. Of one that does not, DataLoader finds out when it first
    reads: it asks for the first items by an array and one at a time. An array it is if both answers hold the same
    values, or if a single index is refused; one at a time if the array is (by any exception), or if they differ.

    Examples
    --------
    >>> class Squares(vkml.data.Dataset):
    ...     def __len__(self):
    ...         return 4
    ...     def __getitem__(self, i):
    ...         return (np.asarray(i) ** 2,)
    >>> [x.tolist() for (x,) in vkml.data.DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    takes_arrays: bool | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, indices: Any) -> Any:
        raise NotImplementedError


class ArrayDataset(Dataset):
    """Arrays of one length; an item is a tuple with one entry of each.

    Examples
    --------
    >>> ds = vkml.data.ArrayDataset(np.arange(6).reshape(3, 2), np.arange(3))
    >>> len(ds), ds[np.array([2, 0])][1].tolist()
    (3, [2, 0])
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise _core.ShapeError("ArrayDataset: expected at least one array, got none")
        self.arrays = tuple(np.asarray(a) for a in arrays)
        lengths = [len(a) if a.ndim else -1 for a in self.arrays]
        if len(set(lengths)) != 1 or lengths[0] < 0:
            raise _core.ShapeError(
                f"ArrayDataset: expected arrays of one length, got shapes {[a.shape for a in self.arrays]}"
            )

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, indices: Any) -> tuple[np.ndarray, ...]:
        return tuple(a[indices] for a in self.arrays)


class Subset(Dataset):
    """Some items of another dataset.

    Examples
    --------
    >>> vkml.data.Subset(vkml.data.ArrayDataset(np.arange(5)), [1, 3])[np.array([0, 1])]
    (array([1, 3]),)
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | np.ndarray) -> None:
        self.dataset, self.indices = dataset, np.asarray(indices, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Any) -> Any:
        return self.dataset[self.indices[indices]]


def split(dataset: Any, fraction: float, seed: int = 0) -> tuple[Subset, Subset]:
    """Two disjoint parts: round(fraction * len) random items, and the others.

    Examples
    --------
    >>> a, b = vkml.data.split(vkml.data.ArrayDataset(np.arange(10)), 0.8)
    >>> len(a), len(b)
    (8, 2)
    """
    if not 0 <= fraction <= 1:
        raise _core.ShapeError(f"split: fraction: expected a number in [0, 1], got {fraction}")
    _index("split: seed", seed, 0)
    order = np.random.default_rng(seed).permutation(len(dataset))
    first = round(fraction * len(dataset))
    return Subset(dataset, order[:first]), Subset(dataset, order[first:])


def _unwrapped(dataset: Any, indices: np.ndarray) -> tuple[Any, np.ndarray]:
    """The dataset below subsets, and its indices."""
    while isinstance(dataset, Subset) and type(dataset).__getitem__ is Subset.__getitem__:
        dataset, indices = dataset.dataset, dataset.indices[indices]
    return dataset, indices


def _index(where: str, value: Any, least: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = least - 1
    if found < least:
        raise _core.ShapeError(f"{where}: expected a whole number >= {least}, got {value!r:.60}")
    return found


class DataLoader:
    """Batches of a dataset as tuples of tensors, in an order that seed and epoch fix.

    The epoch advances at every `iter()`. With shuffle the order is `default_rng(seed + epoch).permutation(len)`.

    Parameters
    ----------
    dataset : Dataset, or anything with `__len__` and `__getitem__`
    batch_size : int
    drop_last : bool
        Leaves out a last batch that is not full.
    device : device or str, optional
        Where the tensors are made.
    transform : f(rng, arrays) -> arrays, optional
        Sees NumPy arrays; its generator is `default_rng([seed, epoch, 0x7A11])`.
    prefetch : int
        Batches that are made ahead on other threads and copied to the device while it computes; 0: none. The batches
        and their order are the same.
    workers : int
        How many threads make them. Several of them index the dataset at once; the transform runs on one batch at a
        time, in order.
    num_workers : int, optional
        PyTorch's way to say both: that many threads, which make 2 batches each ahead unless `prefetch` says how many; 0
        makes every batch when it is asked for. Threads, not processes: the dataset is shared, nothing is pickled, and
        work that holds the interpreter's lock does not run side by side.

    Examples
    --------
    >>> loader = vkml.data.DataLoader(vkml.data.ArrayDataset(np.arange(5)), batch_size=2, prefetch=2)
    >>> [x.tolist() for (x,) in loader]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        device: Any = None,
        transform: Callable | None = None,
        prefetch: int = 0,
        workers: int = 1,
        num_workers: int | None = None,
    ) -> None:
        for name, value, least in (("batch_size", batch_size, 1), ("prefetch", prefetch, 0), ("workers", workers, 1)):
            _index(f"DataLoader: {name}", value, least)
        if num_workers is not None:
            _index("DataLoader: num_workers", num_workers, 0)
            if workers != 1 or (num_workers == 0 and prefetch):
                other = "workers" if workers != 1 else "prefetch"
                raise _core.ShapeError(f"DataLoader: num_workers: expected no {other} beside {num_workers}, got one")
            workers, prefetch = max(num_workers, 1), prefetch or 2 * num_workers
        _index("DataLoader: seed", seed, 0)
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.seed, self.device, self.transform = seed, device, transform
        self.prefetch, self.workers = prefetch, workers
        self.num_workers = workers if prefetch else 0
        self.epoch = 0
        self._asked: tuple[Any, bool] | None = None  # a dataset, and whether it takes arrays

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next iter()."""
        self.epoch = _index("DataLoader: set_epoch: epoch", epoch, 0)

    def __repr__(self) -> str:
        return f"DataLoader({len(self)} batches of {self.batch_size}, shuffle={self.shuffle}, device={self.device})"

    def __len__(self) -> int:
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._batches(epoch)

    def _takes_arrays(self) -> bool:
        dataset, indices = _unwrapped(self.dataset, np.arange(len(self.dataset)))
        if self._asked is None or self._asked[0] is not dataset:
            known = isinstance(dataset, ArrayDataset) and type(dataset).__getitem__ is ArrayDataset.__getitem__
            self._asked = (dataset, known or takes_arrays(dataset, indices))
        return self._asked[1]

    def _batches(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        n, size = len(self.dataset), self.batch_size
        order = np.random.default_rng(self.seed + epoch).permutation(n) if self.shuffle else np.arange(n)
        generator = np.random.default_rng([self.seed, epoch, 0x7A11])
        device = _core.get_default_device() if self.device is None else self.device  # a worker has no scopes of its own

        arrays = len(self) > 0 and self._takes_arrays()

        def read(i: int) -> tuple:
            batch = batch_of(*_unwrapped(self.dataset, order[i * size : (i + 1) * size]), arrays)
            return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)

        def change(arrays: tuple) -> tuple:
            return arrays if self.transform is None else tuple(self.transform(generator, arrays))

        def upload(arrays: tuple) -> tuple[Tensor, ...]:
            return tuple(tensor(a, device=device) for a in arrays)

        if self.prefetch == 0:
            return (upload(change(read(i))) for i in range(len(self)))
        return ordered(len(self), read, change, upload, ahead=self.prefetch, workers=self.workers)


class Compose:
    """Transforms one after the other.

    Examples
    --------
    >>> augment = vkml.data.Compose(vkml.data.RandomCrop(8, padding=1), vkml.data.RandomHorizontalFlip())
    >>> images = np.zeros((2, 3, 8, 8), np.float32)
    >>> augment(np.random.default_rng(0), (images,))[0].shape
    (2, 3, 8, 8)
    """

    def __init__(self, *transforms: Callable) -> None:
        self.transforms = transforms

    def __call__(self, rng: np.random.Generator, arrays: tuple) -> tuple:
        for transform in self.transforms:
            arrays = transform(rng, arrays)
        return arrays


class RandomHorizontalFlip:
    """Mirrors images (N, C, H, W), the first array, each with probability p.

    Examples
    --------
    >>> flip = vkml.data.RandomHorizontalFlip(p=1.0)
    >>> flip(np.random.default_rng(0), (np.arange(3.0).reshape(1, 1, 1, 3),))[0].tolist()
    [[[[2.0, 1.0, 0.0]]]]
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise _core.ShapeError(f"RandomHorizontalFlip: p: expected a number in [0, 1], got {p}")
        self.p = p

    def __call__(self, rng: np.random.Generator, arrays: tuple) -> tuple:
        images = np.array(arrays[0])
        chosen = rng.random(len(images)) < self.p
        images[chosen] = images[chosen][..., ::-1]
        return (images, *arrays[1:])


class RandomCrop:
    """A window of each image (N, C, H, W), the first array, after padding with `fill`.

    Examples
    --------
    >>> crop = vkml.data.RandomCrop(6)
    >>> crop(np.random.default_rng(0), (np.zeros((2, 1, 8, 8)),))[0].shape
    (2, 1, 6, 6)
    """

    def __init__(self, size: int | tuple[int, int], padding: int = 0, fill: float = 0.0) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding, self.fill = padding, fill

    def __call__(self, rng: np.random.Generator, arrays: tuple) -> tuple:
        images, p = np.asarray(arrays[0]), self.padding
        edge = [(0, 0)] * (images.ndim - 2) + [(p, p), (p, p)]
        images = np.pad(images, edge, constant_values=self.fill)
        height, width = self.size
        room = (images.shape[-2] - height, images.shape[-1] - width)
        if min(room) < 0:
            raise _core.ShapeError(f"RandomCrop: expected a window no larger than {images.shape[-2:]}, got {self.size}")
        top, left = rng.integers(0, room[0] + 1, len(images)), rng.integers(0, room[1] + 1, len(images))
        out = [image[..., t : t + height, l : l + width] for image, t, l in zip(images, top, left, strict=True)]
        return (np.stack(out) if out else images[..., :height, :width], *arrays[1:])

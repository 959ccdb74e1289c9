"""Datasets, batches in an order that a seed fixes, and transforms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._batches import batch_of, collate, items_of, takes_arrays, with_tensors
from ._core import Tensor
from ._creation import as_tensor
from ._prefetch import ordered
from .autograd import set_grad_enabled

__all__ = [
    "ArrayDataset",
    "Compose",
    "DataLoader",
    "Dataset",
    "RandomCrop",
    "RandomHorizontalFlip",
    "Subset",
    "TensorDataset",
    "default_collate",
    "random_split",
    "split",
]


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


class TensorDataset(Dataset):
    """Tensors of one length; an item is a tuple with one entry of each. They stay on their device.

    Examples
    --------
    >>> ds = vkml.data.TensorDataset(vkml.arange(6.0).reshape(3, 2), vkml.arange(3))
    >>> len(ds), ds[2]
    (3, (tensor([4., 5.]), tensor(2)))
    >>> [y.tolist() for x, y in vkml.data.DataLoader(ds, batch_size=2)]
    [[0, 1], [2]]
    """

    takes_arrays = True

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise _core.ShapeError("TensorDataset: expected at least one tensor, got none")
        self.tensors = tuple(as_tensor(t) for t in tensors)
        shapes = [t.shape for t in self.tensors]
        if any(not s for s in shapes) or len({s[0] for s in shapes}) != 1:
            raise _core.ShapeError(f"TensorDataset: expected tensors of one length, got shapes {shapes}")

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def __getitem__(self, indices: Any) -> tuple[Tensor, ...]:
        return tuple(t[indices] for t in self.tensors)


class Subset(Dataset):
    """Some items of another dataset.

    Examples
    --------
    >>> vkml.data.Subset(vkml.data.ArrayDataset(np.arange(5)), [1, 3])[np.array([0, 1])]
    (array([1, 3]),)
    """

    def __init__(self, dataset: Any, indices: Sequence[int] | np.ndarray) -> None:
        self.dataset, self.indices = dataset, _whole_numbers("Subset: indices", indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Any) -> Any:
        return self.dataset[self.indices[indices]]


def _whole_numbers(where: str, values: Any) -> np.ndarray:
    try:
        found = np.asarray(values)
    except Exception:  # a list of lists of several lengths, a dataset
        found = np.empty((0, 0), object)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise _core.DTypeError(f"{where}: expected a sequence of ints, got {values!r:.60}")
    return found.astype(np.int64)


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


def random_split(
    dataset: Any, lengths: Sequence[float], seed: int = 0, generator: np.random.Generator | None = None
) -> list[Subset]:
    """Disjoint parts of random items, of these lengths.

    Parameters
    ----------
    lengths : ints that add up to the dataset's length, or fractions that add up to 1
        Of fractions each part gets the whole number below; the items left over go to the first parts, one each.
    seed : int
        Which items: the order is `default_rng(seed).permutation(len)`.
    generator : numpy.random.Generator, optional
        Gives the order in place of a seed.

    Examples
    --------
    >>> train, test = vkml.data.random_split(vkml.data.ArrayDataset(np.arange(10)), [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    _index("random_split: seed", seed, 0)
    if isinstance(lengths, str) or not hasattr(lengths, "__iter__"):
        raise _core.DTypeError(f"random_split: lengths: expected a sequence of numbers, got {lengths!r:.60}")
    n, given = len(dataset), list(lengths)
    _check_generator("random_split", generator)
    if not given or not all(isinstance(x, (int, float, np.integer, np.floating)) and x >= 0 for x in given):
        raise _core.ShapeError(f"random_split: lengths: expected numbers >= 0, got {lengths!r:.80}")
    if sum(given) == n and all(int(x) == x for x in given):
        sizes = [int(x) for x in given]
    elif abs(sum(given) - 1) < 1e-6:
        sizes = [int(n * x) for x in given]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
    else:
        raise _core.ShapeError(
            f"random_split: lengths: expected whole numbers that add up to {n}, or fractions to 1, got {given}"
        )
    order = (np.random.default_rng(seed) if generator is None else generator).permutation(n)
    return [Subset(dataset, part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def default_collate(batch: Sequence[Any], device: Any = None) -> Any:
    """Items as one batch of tensors: what DataLoader does with them, for a `collate_fn` that needs it for a part.

    Numbers, arrays and tensors of one shape are stacked; strings become a list; tuples, named tuples and dicts are
    gone through.

    Examples
    --------
    >>> vkml.data.default_collate([{"x": [1.0, 2.0], "name": "a"}, {"x": [3.0, 4.0], "name": "b"}])
    {'x': tensor([[1., 2.],
            [3., 4.]]), 'name': ['a', 'b']}
    """
    if isinstance(batch, (str, bytes, Mapping)) or not hasattr(batch, "__iter__"):
        raise _core.DTypeError(f"default_collate: batch: expected a sequence of items, got {type(batch).__name__}")
    return with_tensors(collate(list(batch)), device, device is not None)


def _check_generator(op: str, generator: Any) -> None:
    if generator is not None and not isinstance(generator, np.random.Generator):
        raise _core.DTypeError(
            f"{op}: generator: expected a numpy.random.Generator, got {type(generator).__name__}; "
            "a number is given as seed"
        )


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
    """Batches of a dataset as tuples of tensors (of a dataset of dicts: as dicts), in an order that seed and epoch fix.

    The epoch advances at every `iter()`. With shuffle the order is `default_rng(seed + epoch).permutation(len)`. The
    seed is 0 unless given, whatever `vkml.manual_seed` was told.

    Parameters
    ----------
    dataset : Dataset, or anything with `__len__` and `__getitem__`
    batch_size : int
    drop_last : bool
        Leaves out a last batch that is not full.
    device : device or str, optional
        Where the tensors are made: the default device, if None. Tensors that the dataset gives stay where they are
        then.
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
    collate_fn : f(items) -> batch, optional
        Makes a batch of a list of items, in place of `default_collate`. The batch is handed out in the form it has;
        NumPy arrays in it become tensors. A transform sees it first.
    generator : numpy.random.Generator, optional
        In place of seed and epoch: gives the order of each epoch at `iter()`, and a seed for the transform.

    Examples
    --------
    >>> loader = vkml.data.DataLoader(vkml.data.ArrayDataset(np.arange(5)), batch_size=2, prefetch=2)
    >>> [x.tolist() for (x,) in loader]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        device: Any = None,
        transform: Callable | None = None,
        prefetch: int = 0,
        workers: int = 1,
        num_workers: int | None = None,
        collate_fn: Callable | None = None,
        generator: np.random.Generator | None = None,
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
        _check_generator("DataLoader", generator)
        for name, function in (("collate_fn", collate_fn), ("transform", transform)):
            if function is not None and not callable(function):
                raise _core.DTypeError(f"DataLoader: {name}: expected a callable, got {type(function).__name__}")
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise _core.DTypeError(
                f"DataLoader: dataset: expected __len__ and __getitem__, got {type(dataset).__name__}"
            )
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.seed, self.device, self.transform = seed, device, transform
        self.prefetch, self.workers = prefetch, workers
        self.num_workers = workers if prefetch else 0
        self.collate_fn, self.generator = collate_fn, generator
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

    def __iter__(self) -> Iterator[Any]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._batches(epoch)

    def _takes_arrays(self) -> bool:
        dataset, indices = _unwrapped(self.dataset, np.arange(len(self.dataset)))
        if self._asked is None or self._asked[0] is not dataset:
            known = isinstance(dataset, ArrayDataset) and type(dataset).__getitem__ is ArrayDataset.__getitem__
            self._asked = (dataset, known or takes_arrays(dataset, indices))
        return self._asked[1]

    def _generators(self, epoch: int) -> tuple[np.random.Generator, np.random.Generator]:
        """The generator of the order, and the transform's."""
        if self.generator is None:
            return np.random.default_rng(self.seed + epoch), np.random.default_rng([self.seed, epoch, 0x7A11])
        return self.generator, np.random.default_rng(self.generator.integers(0, 2**32, 4))

    def _batches(self, epoch: int) -> Iterator[Any]:
        n, size = len(self.dataset), self.batch_size
        of_order, of_transform = self._generators(epoch)
        order = of_order.permutation(n) if self.shuffle else np.arange(n)
        # A worker has no scopes of its own: it works in these.
        default, tracks = _core.get_default_device(), _core.is_grad_enabled()
        device = default if self.device is None else self.device
        collate_fn, transform = self.collate_fn, self.transform
        arrays = len(self) > 0 and collate_fn is None and self._takes_arrays()

        def read(i: int) -> Any:
            dataset, indices = _unwrapped(self.dataset, order[i * size : (i + 1) * size])
            with default, set_grad_enabled(tracks):
                if collate_fn is not None:
                    return collate_fn(items_of(dataset, indices))
                return batch_of(dataset, indices, arrays)

        def change(batch: Any) -> Any:
            if transform is None:
                return batch
            with default, set_grad_enabled(tracks):
                changed = transform(of_transform, batch)
            if not isinstance(batch, tuple):
                return changed
            if not isinstance(changed, (tuple, list, Iterator)):
                raise _core.DTypeError(
                    f"DataLoader: transform: expected a tuple of arrays from it, got {type(changed).__name__}"
                )
            return tuple(changed)

        def upload(batch: Any) -> Any:
            return with_tensors(batch, device, self.device is not None, collate_fn is None)

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

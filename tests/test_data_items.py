"""Datasets that take an array of indices, and those that take one at a time, told apart."""

import numpy as np
import pytest
from vkml.data import ArrayDataset, DataLoader, Dataset, Subset, split

import vkml

N = 8


def table(i):
    return np.arange(2.0 * N).reshape(N, 2)[i]


def refuses(i):
    if not isinstance(i, int):
        raise RuntimeError("one at a time")
    return np.full(3, i)


def opens(i):
    with open(f"img_{i}.bin" if not isinstance(i, int) else "/dev/null", "rb") as file:
        return np.array([i, len(file.read())])


# One item of each, by what its __getitem__ does to a single index.
SINGLE = {
    "as long as the batch": lambda i: np.random.default_rng(i).random(4),
    "of length 1": lambda i: np.random.default_rng(i).random(1),
    "a scalar": lambda i: np.random.default_rng(i).random(),
    "a label": lambda i: (np.random.default_rng(i).random(4), int(np.sum(i)) % 3),
    "in a list": lambda i: np.array([i]),
    "twice": lambda i: np.stack([i, i]),
    "thrice": lambda i: np.stack([i, i, i]),
    "a square": lambda i: np.stack([np.stack([i, i])] * 2),
    "filled": lambda i: np.full((2, 2), np.max(i)),
    "rows as columns": lambda i: tuple(np.arange(4.0 * N).reshape(N, 4)[i]),
    "FileNotFoundError": opens,
    "AttributeError": lambda i: np.array([i.bit_length(), i]),
    "RuntimeError": refuses,
    "TypeError": lambda i: [10, 20, 30, 40, 50, 60, 70, 80][i],
    "ragged": lambda i: np.arange(4) + [0, 1, 2, 3, 4, 5, 6, 7][int(i)],
}
ARRAYS = {
    "a row": table,
    "rows and labels": lambda i: (table(i), np.asarray(i) % 3),
    "elementwise": lambda i: np.asarray(i) ** 2,
    "not a number": lambda i: np.full((N, 3), np.nan)[i],
    "arrays only": lambda i: table(i[np.arange(len(i))]),
}


class Items(Dataset):
    def __init__(self, item):
        self.item, self.asked = item, []

    def __len__(self):
        return N

    def __getitem__(self, i):
        self.asked.append(np.ndim(i))
        return self.item(i)


def columns(value):
    return value if isinstance(value, tuple) else (value,)


def expected(item, indices):
    items = [columns(item(int(i))) for i in indices]
    return [np.stack([np.asarray(x) for x in column]) for column in zip(*items, strict=True)]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SINGLE)
def test_single_indices_are_collated(name, size, prefetch):
    for dataset, indices in (
        (Items(SINGLE[name]), np.arange(N)),
        (Subset(Items(SINGLE[name]), [5, 1, 6]), np.array([5, 1, 6])),
        (Subset(Subset(Items(SINGLE[name]), [5, 1, 6]), [2]), np.array([6])),
    ):
        batches = list(DataLoader(dataset, size, device="cpu", prefetch=prefetch))
        assert len(batches) == -(-len(indices) // size)
        for k, batch in enumerate(batches):
            wanted = expected(SINGLE[name], indices[k * size : (k + 1) * size])
            assert len(batch) == len(wanted)
            for got, answer in zip(batch, wanted, strict=True):
                assert got.shape == answer.shape
                np.testing.assert_array_equal(got.numpy(), answer.astype(got.numpy().dtype))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_handed_on(name, size):
    dataset = Items(ARRAYS[name])
    loader = DataLoader(dataset, size, device="cpu")
    list(loader)
    dataset.asked.clear()
    batches = list(loader)
    assert dataset.asked == [1] * len(batches)  # found out once: a batch is one call
    for k, batch in enumerate(batches):
        for got, answer in zip(batch, columns(ARRAYS[name](np.arange(N)[k * size : (k + 1) * size])), strict=True):
            np.testing.assert_array_equal(got.numpy(), answer.astype(got.numpy().dtype))


def test_a_class_says_which():
    class Loud(Items):
        takes_arrays = True

    dataset = Loud(lambda i: np.atleast_1d(i) * 2)
    assert [x.tolist() for (x,) in DataLoader(dataset, 4)] == [[0, 2, 4, 6], [8, 10, 12, 14]] and dataset.asked == [
        1,
        1,
    ]
    Loud.takes_arrays = False
    assert next(iter(DataLoader(dataset, 4)))[0].tolist() == [[0], [2], [4], [6]]

    class Doubled(ArrayDataset):
        def __getitem__(self, i):
            return (np.full(4, int(self.arrays[0][i])),)

    assert next(iter(DataLoader(Doubled(np.arange(5)), 4)))[0].tolist() == [[i] * 4 for i in range(4)]


def test_errors_of_the_dataset_come_through():
    def broken(i):
        raise LookupError(f"no item {i}")

    with pytest.raises(LookupError, match="no item 0"):
        list(DataLoader(Items(broken), 2))


@pytest.mark.parametrize("seed", [-1, None, "a", 1.5])
def test_seeds(seed):
    with pytest.raises(vkml.ShapeError, match="DataLoader: seed: expected a whole number >= 0, got"):
        DataLoader(ArrayDataset(np.arange(4)), 2, shuffle=True, seed=seed)
    with pytest.raises(vkml.ShapeError, match="split: seed: expected"):
        split(ArrayDataset(np.arange(4)), 0.5, seed=seed)
    with pytest.raises(vkml.ShapeError, match="DataLoader: batch_size: expected"):
        DataLoader(ArrayDataset(np.arange(4)), "a")

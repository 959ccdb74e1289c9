"""Datasets, the order of batches, transforms."""

import numpy as np
import pytest
from vkml.data import ArrayDataset, Compose, DataLoader, Dataset, RandomCrop, RandomHorizontalFlip, split

import vkml


def numbers(n=10):
    return ArrayDataset(np.arange(2 * n, dtype=np.float32).reshape(n, 2), np.arange(n))


def test_batches(device):
    loader = DataLoader(numbers(), 4, device=device)
    batches = list(loader)
    assert len(loader) == len(batches) == 3 and [len(y) for _, y in batches] == [4, 4, 2]
    x, y = batches[1]
    assert x.device == device and x.dtype == vkml.float32 and y.dtype == vkml.int64
    assert y.tolist() == [4, 5, 6, 7] and x.tolist() == [[8, 9], [10, 11], [12, 13], [14, 15]]
    assert len(DataLoader(numbers(), 4, drop_last=True)) == 2 == len(list(DataLoader(numbers(), 4, drop_last=True)))


def test_order_follows_seed_and_epoch():
    loader = DataLoader(numbers(), 10, shuffle=True, seed=3)
    for epoch in range(3):
        ((_, y),) = loader
        assert y.tolist() == np.random.default_rng(3 + epoch).permutation(10).tolist()
    loader.set_epoch(1)
    ((_, y),) = loader
    assert y.tolist() == np.random.default_rng(4).permutation(10).tolist() and loader.epoch == 2


def test_the_epoch_advances_at_iter():
    loader = DataLoader(numbers(), 10, shuffle=True)
    first, second = iter(loader), iter(loader)
    assert next(second)[1].tolist() == np.random.default_rng(1).permutation(10).tolist()
    assert next(first)[1].tolist() == np.random.default_rng(0).permutation(10).tolist()


def test_transform_generator():
    seen = []

    def transform(rng, arrays):
        seen.append(rng.random())
        return (arrays[0] + 1, arrays[1])

    loader = DataLoader(numbers(), 5, seed=7, transform=transform)
    assert next(iter(loader))[0].tolist()[0] == [1, 2]
    seen.clear()
    list(loader)  # epoch 1
    generator = np.random.default_rng([7, 1, 0x7A11])
    assert seen == [generator.random(), generator.random()]


def test_a_dataset_of_single_items_is_collated():
    class Squares(Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            if not isinstance(i, int):
                raise TypeError("one index at a time")
            return np.full(2, i, np.float32), i * i

    assert [y.tolist() for _, y in DataLoader(Squares(), 3)] == [[0, 1, 4], [9, 16]]
    part, _ = split(Squares(), 0.6, seed=1)
    assert sum(len(y) for _, y in DataLoader(part, 2)) == 3
    assert [x.tolist() for (x,) in DataLoader([10, 20, 30], 2)] == [[10, 20], [30]]


def test_split():
    a, b = split(numbers(), 0.8, seed=5)
    assert len(a) == 8 and len(b) == 2
    order = np.random.default_rng(5).permutation(10)
    assert a[np.arange(8)][1].tolist() == order[:8].tolist() and b[np.arange(2)][1].tolist() == order[8:].tolist()


def test_transforms(rng):
    images = rng.standard_normal((6, 1, 4, 5)).astype(np.float32)
    labels = np.arange(6)
    flipped, kept = RandomHorizontalFlip(1.0)(rng, (images, labels))
    np.testing.assert_array_equal(flipped, images[..., ::-1])
    assert kept is labels and RandomHorizontalFlip(0.0)(rng, (images,))[0].tolist() == images.tolist()
    cropped, _ = RandomCrop((4, 5), padding=1, fill=9.0)(rng, (images, labels))
    assert cropped.shape == images.shape
    padded = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=9.0)
    windows = [padded[:, :, t : t + 4, l : l + 5] for t in range(3) for l in range(3)]
    assert all(any(np.array_equal(cropped[i], w[i]) for w in windows) for i in range(6))
    both = Compose(RandomHorizontalFlip(1.0), RandomHorizontalFlip(1.0))
    np.testing.assert_array_equal(both(rng, (images,))[0], images)


def test_refusals():
    for bad in (
        lambda: DataLoader(numbers(), 0),
        lambda: ArrayDataset(np.zeros(2), np.zeros(3)),
        lambda: ArrayDataset(),
        lambda: ArrayDataset(np.float32(1)),
        lambda: split(numbers(), 1.5),
        lambda: RandomHorizontalFlip(2),
        lambda: RandomCrop(9)(np.random.default_rng(0), (np.zeros((1, 1, 4, 4)),)),
    ):
        with pytest.raises(vkml.ShapeError, match="expected"):
            bad()

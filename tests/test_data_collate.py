"""What PyTorch's users expect of vkml.data: TensorDataset, random_split, collating, collate_fn, generator."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from helpers import to_numpy
from vkml.data import ArrayDataset, DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split

import vkml

Point = namedtuple("Point", "x y")


class Made(Dataset):
    """Items of a function, for single indices only."""

    def __init__(self, item, n=5):
        self.item, self.n = item, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not isinstance(i, int):
            raise TypeError("one at a time")
        return self.item(i)


# TensorDataset --------------------------------------------------------------------------------------------------------


def test_tensor_dataset(device):
    x, y = vkml.arange(10.0, device=device).reshape(5, 2), vkml.arange(5, device=device)
    dataset = TensorDataset(x, y)
    assert len(dataset) == 5 and dataset.tensors[0] is x
    a, b = dataset[3]
    assert a.tolist() == [6, 7] and b.item() == 3 and a.device == device
    assert dataset[np.array([4, 0])][1].tolist() == [4, 0] and dataset[1:3][1].tolist() == [1, 2]
    batches = list(DataLoader(dataset, 2, shuffle=True, seed=4))
    order = np.random.default_rng(4).permutation(5)
    assert [y.tolist() for _, y in batches] == [order[:2].tolist(), order[2:4].tolist(), order[4:].tolist()]
    assert all(t.device == device for batch in batches for t in batch)  # they stay where they are
    part = Subset(dataset, [3, 1])
    assert [y.tolist() for _, y in DataLoader(part, 2)] == [[3, 1]]
    assert TensorDataset(np.arange(3))[1][0].item() == 1


def test_a_loader_moves_tensors_where_it_is_told(vulkan):
    on_cpu, there = TensorDataset(vkml.arange(4)), TensorDataset(vkml.arange(4, device=vulkan))
    for dataset, device in ((on_cpu, vulkan), (there, "cpu")):
        for prefetch in (0, 2):
            batches = list(DataLoader(dataset, 3, device=device, prefetch=prefetch))
            assert [x.tolist() for (x,) in batches] == [[0, 1, 2], [3]] and batches[0][0].device == device
    with vkml.device(vulkan):  # the default device is for what is not on one yet
        assert next(iter(DataLoader(on_cpu, 2)))[0].device == "cpu"
        assert next(iter(DataLoader(ArrayDataset(np.arange(4)), 2)))[0].device == vulkan


def test_errors_of_tensor_dataset():
    for call, text in (
        (lambda: TensorDataset(), "expected at least one tensor, got none"),
        (
            lambda: TensorDataset(vkml.ones(2), vkml.ones(3)),
            r"expected tensors of one length, got shapes \[\(2,\), \(3,\)\]",
        ),
        (lambda: TensorDataset(vkml.tensor(1.0)), "expected tensors of one length"),
    ):
        with pytest.raises(vkml.ShapeError, match=f"^TensorDataset: {text}"):
            call()


# random_split ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([7, 3], [7, 3]),
        ((10,), [10]),
        ([0.5, 0.3, 0.2], [5, 3, 2]),
        ([1 / 3] * 3, [4, 3, 3]),
        ([0, 10], [0, 10]),
        ([1.0], [10]),
    ],
)
def test_random_split(lengths, sizes):
    dataset = ArrayDataset(np.arange(10) * 2)
    parts = random_split(dataset, lengths, seed=6)
    assert [len(p) for p in parts] == sizes
    order = np.random.default_rng(6).permutation(10)
    assert np.concatenate([p.indices for p in parts]).tolist() == order.tolist()
    again = random_split(dataset, lengths, generator=np.random.default_rng(6))
    assert [p.indices.tolist() for p in again] == [p.indices.tolist() for p in parts]
    assert parts[-1][np.arange(len(parts[-1]))][0].tolist() == (order[10 - sizes[-1] :] * 2).tolist()


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Length of split")
def test_fractions_are_rounded_as_torch_does():
    torch = pytest.importorskip("torch")
    for n, lengths in ((10, [1 / 3] * 3), (11, [0.5, 0.25, 0.25]), (7, [0.9, 0.1]), (3, [0.25] * 4), (1, [0.5, 0.5])):
        ours = [len(p) for p in random_split(list(range(n)), lengths)]
        assert ours == [len(p) for p in torch.utils.data.random_split(list(range(n)), lengths)]


def test_errors_of_random_split():
    dataset = ArrayDataset(np.arange(10))
    for call, kind, text in (
        (
            lambda: random_split(dataset, [5, 4]),
            vkml.ShapeError,
            "lengths: expected whole numbers that add up to 10, or",
        ),
        (lambda: random_split(dataset, [0.5, 0.4]), vkml.ShapeError, "lengths: expected whole numbers"),
        (lambda: random_split(dataset, [-1, 11]), vkml.ShapeError, "lengths: expected numbers >= 0"),
        (lambda: random_split(dataset, 10), vkml.DTypeError, "lengths: expected a sequence of numbers, got 10"),
        (lambda: random_split(dataset, None), vkml.DTypeError, "lengths: expected a sequence of numbers, got None"),
        (lambda: random_split(dataset, []), vkml.ShapeError, "lengths: expected numbers >= 0"),
        (lambda: random_split(dataset, ["a"]), vkml.ShapeError, "lengths: expected numbers >= 0"),
        (lambda: random_split(dataset, [10], seed=-1), vkml.ShapeError, "seed: expected a whole number >= 0"),
        (
            lambda: random_split(dataset, [10], generator=3),
            vkml.DTypeError,
            "generator: expected a numpy.random.Generator, got int",
        ),
    ):
        with pytest.raises(kind, match=f"^random_split: {text}"):
            call()


# Collating ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_dicts(device, options):
    item = lambda i: {"x": np.full(3, i, np.float32), "label": i, "score": i / 2, "name": f"n{i}"}  # noqa: E731
    first, _, last = DataLoader(Made(item), 2, device=device, **options)
    assert list(first) == ["x", "label", "score", "name"]
    assert first["x"].tolist() == [[0, 0, 0], [1, 1, 1]] and first["x"].device == device
    assert first["label"].dtype == vkml.int64 and first["score"].dtype == vkml.float32
    assert first["score"].tolist() == [0, 0.5] and first["name"] == ["n0", "n1"]
    assert last["label"].tolist() == [4] and last["name"] == ["n4"]


def test_dicts_of_arrays_are_asked_for_once():
    class Table(Dataset):
        asked = 0

        def __len__(self):
            return 6

        def __getitem__(self, i):
            self.asked += 1
            return {"x": (np.arange(6) ** 2)[i], "pair": (np.arange(6)[i], np.arange(6.0)[i])}

    table = Table()
    loader = DataLoader(table, 3)
    list(loader)
    table.asked = 0
    first, second = loader
    assert table.asked == 2 and second["x"].tolist() == [9, 16, 25] and first["pair"][1].tolist() == [0, 1, 2]


def test_named_tuples_nested_tuples_and_tensors(device):
    item = lambda i: Point(vkml.full((2,), float(i), device=device), (i, {"z": [i, i + 1]}))  # noqa: E731
    batch, *_ = DataLoader(Made(item), 2)
    assert isinstance(batch, Point) and batch.x.tolist() == [[0, 0], [1, 1]] and batch.x.device == device
    number, inner = batch.y
    assert number.tolist() == [0, 1] and inner["z"].tolist() == [[0, 1], [1, 2]]


def test_default_collate(device):
    assert default_collate([1, 2, 3]).tolist() == [1, 2, 3] and default_collate([0.5]).dtype == vkml.float32
    assert default_collate([True, False]).dtype == vkml.bool_
    x, y = default_collate([(np.zeros(2), 1), (np.ones(2), 2)], device=device)
    assert x.tolist() == [[0, 0], [1, 1]] and y.tolist() == [1, 2] and x.device == y.device == device
    a, b = default_collate([[1, "a"], [2, "b"]])
    assert a.tolist() == [1, 2] and b == ["a", "b"]
    there = default_collate([vkml.ones(2, device=device), vkml.zeros(2, device=device)])
    assert there.device == device and there.tolist() == [[1, 1], [0, 0]]


def test_items_that_do_not_fit():
    for items, kind, text in (
        ([np.ones(2), np.ones(3)], vkml.ShapeError, r"expected items of one shape, got \(2,\) and \(3,\)"),
        ([vkml.ones(2), vkml.ones(3)], vkml.ShapeError, r"expected items of one shape, got \(2,\) and \(3,\)"),
        ([(1, 2), (1,)], vkml.ShapeError, "expected tuples of 2, got others"),
        ([{"a": 1}, {"b": 1}], vkml.ShapeError, r"expected dicts with the keys \['a'\], got others"),
        ([{"a": 1}, 3], vkml.ShapeError, "expected dicts with the keys"),
        ([None, None], vkml.DTypeError, "expected tensors, arrays, numbers, .*, got None \\(NoneType"),
        ([1, "a"], vkml.DTypeError, r"expected tensors, arrays, numbers, .*, got 'a' \(str\)"),
        ([{"a": [[1, 2], [3]]}], vkml.DTypeError, r"expected tensors, .*, got \[\[1, 2\], \[3\]\] \(list\)"),
        ([object()], vkml.DTypeError, "expected tensors, arrays, numbers, .*, got <object.*\\(object"),
        ([], vkml.ShapeError, "expected at least one item, got none"),
    ):
        with pytest.raises(kind, match=f"^collate: {text}"):
            default_collate(items)
    for batch in (5, None, "ab", {"a": 1}):
        text = f"batch: expected a sequence of items, got {type(batch).__name__}"
        with pytest.raises(vkml.DTypeError, match=f"^default_collate: {text}"):
            default_collate(batch)
    with pytest.raises(vkml.ShapeError, match=r"^collate: expected items of one shape"):
        list(DataLoader(Made(lambda i: np.ones(i)), 2))


@pytest.mark.torch
def test_torch_datasets_and_torchs_collate():
    torch = pytest.importorskip("torch")
    items = [{"x": np.arange(3.0) + i, "y": (i, f"{i}"), "p": Point(i, 2 * i)} for i in range(4)]
    ours, theirs = default_collate(items), torch.utils.data.default_collate(items)
    np.testing.assert_array_equal(to_numpy(ours["x"]), theirs["x"].numpy())
    assert ours["y"][0].tolist() == theirs["y"][0].tolist() and ours["y"][1] == list(theirs["y"][1])
    assert ours["p"].y.tolist() == theirs["p"].y.tolist() and type(theirs["p"]) is type(ours["p"])
    dataset = torch.utils.data.TensorDataset(torch.arange(10.0).reshape(5, 2), torch.arange(5))
    assert [y.tolist() for _, y in DataLoader(dataset, 3)] == [[0, 1, 2], [3, 4]]


# collate_fn and generator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_collate_fn(device, options):
    def padded(items):
        longest = max(len(i) for i in items)
        rows = np.zeros((len(items), longest), np.float32)
        for row, item in zip(rows, items, strict=True):
            row[: len(item)] = item
        return {"rows": rows, "lengths": [len(i) for i in items], "tensor": vkml.ones(2), "inner": [np.int64(3), "a"]}

    loader = DataLoader(Made(lambda i: np.full(i, i)), 2, collate_fn=padded, device=device, **options)
    batch = list(loader)[1]
    assert batch["rows"].tolist() == [[2, 2, 0], [3, 3, 3]] and batch["rows"].device == device
    assert batch["lengths"] == [2, 3] and batch["tensor"].device == device
    assert batch["inner"][0].item() == 3 and batch["inner"][1] == "a"
    seen = []
    list(DataLoader(ArrayDataset(np.arange(4)), 3, collate_fn=lambda items: seen.append(items) or len(items)))
    assert [len(items) for items in seen] == [3, 1] and int(
        seen[0][2][0]
    ) == 2  # single items, whatever the dataset takes
    assert list(DataLoader([1, 2, 3], 2, collate_fn=len)) == [2, 1]
    assert next(iter(DataLoader([1, 2], 2, collate_fn=default_collate))).tolist() == [1, 2]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_workers_make_tensors_where_the_caller_is(vulkan, options):
    dataset = Made(lambda i: vkml.full((2,), float(i)))
    transform = lambda rng, batch: (batch, vkml.ones(1))  # noqa: E731
    with vkml.device(vulkan):
        loader = DataLoader(dataset, 2, collate_fn=lambda items: default_collate([*items, *items]), **options)
        assert [x.device for x in loader] == [vulkan] * 3
        for x, y in DataLoader(dataset, 2, collate_fn=default_collate, transform=transform, **options):
            assert x.device == y.device == vulkan
    assert vkml.zeros(1).device == "cpu"


def test_generator():
    dataset = ArrayDataset(np.arange(20))
    loader = DataLoader(dataset, 20, shuffle=True, generator=np.random.default_rng(3))
    epochs = [next(iter(loader))[0].tolist() for _ in range(3)]
    again = DataLoader(dataset, 20, shuffle=True, generator=np.random.default_rng(3))
    assert epochs == [next(iter(again))[0].tolist() for _ in range(3)]
    assert len({tuple(e) for e in epochs}) == 3 and all(sorted(e) == list(range(20)) for e in epochs)
    drawn = []
    for _ in range(2):
        options = {
            "generator": np.random.default_rng(3),
            "transform": lambda rng, arrays: drawn.append(rng.random()) or arrays,
        }
        list(DataLoader(dataset, 10, **options))
    assert drawn[:2] == drawn[2:] and drawn[0] != drawn[1]


def test_a_batch_of_one_by_default():
    assert [x.tolist() for (x,) in DataLoader([5, 6])] == [[5], [6]]


def test_errors_of_the_loader():
    for options, kind, text in (
        (
            {"generator": 3},
            vkml.DTypeError,
            "generator: expected a numpy.random.Generator, got int; a number is given as seed",
        ),
        ({"collate_fn": 3}, vkml.DTypeError, "collate_fn: expected a callable, got int"),
        ({"transform": 3}, vkml.DTypeError, "transform: expected a callable, got int"),
    ):
        with pytest.raises(kind, match=f"^DataLoader: {text}"):
            DataLoader([1], 1, **options)
    for dataset in (None, 5, iter([1])):
        with pytest.raises(vkml.DTypeError, match=r"^DataLoader: dataset: expected __len__ and __getitem__, got "):
            DataLoader(dataset)


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_a_transform_must_give_a_tuple(options):
    for wrong in (None, np.ones(2), 3):
        with pytest.raises(vkml.DTypeError, match=r"^DataLoader: transform: expected a tuple of arrays from it, got "):
            list(DataLoader(ArrayDataset(np.arange(4)), 2, transform=lambda rng, batch, w=wrong: w, **options))
    loader = DataLoader(ArrayDataset(np.arange(4)), 2, transform=lambda rng, batch: (x + 1 for x in batch), **options)
    assert [x.tolist() for (x,) in loader] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}])
def test_workers_record_where_the_caller_does(options):
    w, dataset = vkml.ones(1, requires_grad=True), ArrayDataset(np.arange(4))
    by_items = DataLoader(dataset, 2, collate_fn=lambda items: w * 2, **options)
    by_transform = DataLoader(dataset, 2, transform=lambda rng, batch: (w * 2,), **options)
    for recorded in (True, False):
        with vkml.set_grad_enabled(recorded):
            assert {x.requires_grad for x in by_items} == {recorded}
            assert {x.requires_grad for (x,) in by_transform} == {recorded}
    assert (w * 2).requires_grad


def test_indices_of_a_subset_are_ints():
    dataset = TensorDataset(vkml.arange(3))
    for wrong in (
        [True, False, True],
        np.array([True, False, True]),
        [0.5],
        "ab",
        None,
        1,
        [[0]],
        [[0], [1, 2]],
        [2**70],
    ):
        with pytest.raises(vkml.DTypeError, match=r"^Subset: indices: expected a sequence of ints, got "):
            Subset(dataset, wrong)
    for right in ([], [2], (0, 1), range(2), np.array([1], np.uint8), vkml.tensor([1, 0])):
        assert [int(x) for (x,) in Subset(dataset, right)] == [int(i) for i in right]

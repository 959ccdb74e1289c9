"""Batches made ahead on threads: the same ones, errors that arrive, threads that end."""

import gc
import threading
import time

import numpy as np
import pytest
from runtime.runtime_helpers import run_python
from vkml.data import ArrayDataset, Compose, DataLoader, Dataset, RandomCrop, RandomHorizontalFlip

import vkml


def images(n=50):
    rng = np.random.default_rng(1)
    return ArrayDataset(rng.standard_normal((n, 1, 6, 6)).astype(np.float32), np.arange(n))


def workers():
    return [t for t in threading.enumerate() if t.name == "vkml-data"]


def epochs(device, **options):
    transform = Compose(RandomCrop(6, padding=1), RandomHorizontalFlip())
    loader = DataLoader(images(), 8, shuffle=True, seed=3, device=device, transform=transform, **options)
    return [[(x.tolist(), y.tolist()) for x, y in loader] for _ in range(2)]


class Slow(Dataset):
    """Later items are ready earlier."""

    def __init__(self, n=12, bad=None):
        self.n, self.bad, self.asked = n, bad, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if isinstance(i, np.ndarray):
            raise TypeError("one at a time")
        self.asked.append(i)
        time.sleep(0.002 * (self.n - i))
        if i == self.bad:
            raise FileNotFoundError(f"item {i}")
        return (np.float32(i),)


@pytest.mark.parametrize(
    "options", [{"prefetch": 1}, {"prefetch": 2}, {"prefetch": 5, "workers": 4}, {"num_workers": 3}]
)
def test_the_same_batches(device, options):
    assert epochs(device, **options) == epochs(device)
    assert workers() == []


def test_num_workers_is_pytorchs_way_to_say_it():
    for options, threads, ahead in (
        ({"num_workers": 0}, 0, 0),
        ({"num_workers": 3}, 3, 6),
        ({"num_workers": 2, "prefetch": 1}, 2, 1),
        ({}, 0, 0),
        ({"prefetch": 4}, 1, 4),
    ):
        loader = DataLoader(Slow(), 1, **options)
        assert (loader.num_workers, loader.prefetch) == (threads, ahead)
        batches = iter(loader)
        assert next(batches)[0].item() == 0 and len(workers()) == min(threads, ahead)
        batches.close()
    for options, text in (
        ({"num_workers": -1}, "num_workers: expected a whole number >= 0, got -1"),
        ({"num_workers": 1.5}, "num_workers: expected a whole number >= 0"),
        ({"num_workers": 2, "workers": 2}, "num_workers: expected no workers beside 2"),
        ({"num_workers": 0, "prefetch": 2}, "num_workers: expected no prefetch beside 0"),
    ):
        with pytest.raises(vkml.ShapeError, match=f"^DataLoader: {text}"):
            DataLoader(Slow(), 1, **options)


def test_order_whatever_the_threads():
    loader = DataLoader(Slow(), 1, prefetch=6, workers=6)
    assert [x.item() for (x,) in loader] == list(range(12))


def test_no_more_than_asked_for_is_made_ahead():
    data = Slow(30)
    batches = iter(DataLoader(data, 1, prefetch=3, workers=2))
    next(batches)
    time.sleep(0.4)
    assert max(data.asked) <= 3
    next(batches)
    time.sleep(0.3)
    assert max(data.asked) <= 4
    batches.close()


def test_an_exception_comes_where_its_batch_would():
    seen = []
    with pytest.raises(FileNotFoundError, match="item 5"):
        for (x,) in DataLoader(Slow(bad=5), 1, prefetch=4, workers=4):
            seen.append(x.item())
    assert seen == [0, 1, 2, 3, 4] and workers() == []


@pytest.mark.parametrize("stage", ["transform", "upload"])
def test_exceptions_of_later_stages(stage):
    def transform(rng, arrays):
        if arrays[0][0] == 4:
            if stage == "transform":
                raise KeyError("mine")
            return (np.array(["text"]),)
        return arrays

    loader = DataLoader(Slow(), 1, transform=transform, prefetch=4, workers=3)
    with pytest.raises(KeyError if stage == "transform" else vkml.DTypeError):
        list(loader)
    assert workers() == []


def test_stopping_early_ends_the_threads():
    for _ in DataLoader(Slow(), 1, prefetch=4, workers=3):
        break
    gc.collect()
    assert workers() == []
    batches = iter(DataLoader(Slow(), 1, prefetch=4, workers=3))
    next(batches)
    assert workers()
    del batches
    gc.collect()
    assert workers() == []


def test_batches_go_where_the_caller_is(vulkan):
    with vkml.device(vulkan):
        batches = iter(DataLoader(images(), 8, prefetch=2))
        assert all(x.device == vulkan for x, _ in batches)


def test_prefetching_beside_training(device):
    """The device is used from two threads at once; batches are right and nothing deadlocks."""
    loader = DataLoader(images(64), 8, device=device, prefetch=3, workers=2)
    w = vkml.ones(36, 1, device=device, requires_grad=True)
    for _ in range(5):
        total = 0.0
        for x, y in loader:
            (x.reshape(8, 36) @ w).sum().backward()
            total += y.sum().item()
        assert total == sum(range(64))


@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "raise KeyboardInterrupt"])
def test_exit_in_the_middle(device, ending):
    code = f"""
        import sys, numpy as np, vkml
        data = vkml.data.ArrayDataset(np.zeros((1000, 64), np.float32))
        batches = iter(vkml.data.DataLoader(data, 4, device={device!r}, prefetch=8, workers=4))
        kept = [next(batches), batches]
        try:
            {ending}
        except KeyboardInterrupt:
            pass
        """
    assert run_python(code, timeout=60).stderr == ""


def test_a_forked_child_is_told():
    run_python(
        """
        import os, numpy as np, vkml
        batches = iter(vkml.data.DataLoader(vkml.data.ArrayDataset(np.zeros((100, 4))), 1, prefetch=2))
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                list(batches)
            except vkml.Error as error:
                os._exit(0 if "forked" in str(error) else 4)
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(batches)) == 99
        """,
        timeout=60,
    )


def test_refusals():
    for options in ({"prefetch": -1}, {"workers": 0}, {"prefetch": 1.5}):
        with pytest.raises((ValueError, TypeError)):
            DataLoader(images(), 8, **options)

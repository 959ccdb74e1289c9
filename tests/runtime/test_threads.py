"""Any thread may call any operator."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from helpers import bits, tensor

import vkml


def in_threads(work: Callable[[int], object], count: int = 8) -> list[object]:
    results: list[object] = [None] * count
    start = threading.Barrier(count)

    def run(i: int) -> None:
        start.wait()
        try:
            results[i] = work(i)
        except BaseException as problem:
            results[i] = problem

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for r in results:
        if isinstance(r, BaseException):
            raise r
    return results


def test_threads_share_tensors_and_get_the_bits_of_one(device: str) -> None:
    rng = np.random.default_rng(5)
    shared = tensor(rng.normal(size=(40, 40)), "float32", device)
    inputs = [tensor(rng.normal(size=(40, 40)), "float32", device) for _ in range(8)]

    def work(i: int) -> bytes:
        x = inputs[i]
        for _ in range(25):
            x = vkml.tanh(x @ shared + x * 0.5)
        return bits(x)

    alone = [work(i) for i in range(8)]
    assert in_threads(work) == alone


def test_threads_accumulate_into_shared_parameters(device: str) -> None:
    w = tensor(np.ones(16), "float32", device, requires_grad=True)

    def work(i: int) -> None:
        for _ in range(20):
            (w * float(i)).sum().backward()

    in_threads(work)
    np.testing.assert_array_equal(w.grad.numpy(), np.full(16, 20.0 * sum(range(8)), np.float32))


def test_modes_belong_to_their_thread(device: str) -> None:
    x = tensor(np.ones(3), "float32", device, requires_grad=True)
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with vkml.no_grad(), vkml.device("cpu"):
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    recorded = (x * 2.0).requires_grad
    done.set()
    thread.join()
    assert recorded


def test_reads_from_many_threads(device: str) -> None:
    tensors = [vkml.full((1000,), float(i), device=device) for i in range(64)]

    def work(i: int) -> bool:
        return all(float((t + 1.0)[i]) == value + 1 for value, t in enumerate(tensors))

    assert all(in_threads(work))


def test_errors_stay_in_their_thread(device: str) -> None:
    def work(i: int) -> int:
        caught = 0
        for _ in range(20):
            try:
                vkml.ones((2, 3), device=device) + vkml.ones((4 + i,), device=device)
            except vkml.ShapeError as error:
                caught += f"({4 + i},)" in str(error)
        return caught

    assert in_threads(work) == [20] * 8

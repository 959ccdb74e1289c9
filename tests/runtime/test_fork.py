"""A forked child computes on the CPU, however much the parent was doing, and is told what it cannot do on a GPU."""

from __future__ import annotations

import pytest
from runtime_helpers import run_python

WORK = """
import os, signal, sys, threading, time, numpy as np, vkml
big = np.random.default_rng(0).normal(size=(400, 400)).astype(np.float32)
def work(where="cpu"):
    x = vkml.tensor(big, device=where).requires_grad_()
    y = vkml.tanh((x @ x) * 0.05)
    loss = (y * y).sum() + vkml.softmax(y, -1)[0].sum()
    loss.backward()
    return float(loss.detach()), float(x.grad.sum())

def finish(child, what):
    end = time.time() + 30
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, (what, status)
            return
        if time.time() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise SystemExit(f"the child hangs: {what}")
        time.sleep(0.002)

def in_child(f, leave=os._exit):
    child = os.fork()
    if child == 0:
        try:
            f()
        except BaseException as problem:
            print("child:", type(problem).__name__, problem, flush=True)
            os._exit(3)
        leave(0)
    return child
answer = work()
"""
THREADS = {"OMP_NUM_THREADS": "4"}


def run(code: str, timeout: float = 110) -> None:
    import textwrap

    run_python(WORK + textwrap.dedent(code), THREADS, timeout)


@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
def test_after_parallel_work(leave: str) -> None:
    run(
        f"""
        def check():
            assert work() == answer
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        for i in range(8):
            finish(in_child(check, {leave}), i)
            assert work() == answer
        """
    )


def test_from_a_thread_that_did_parallel_work() -> None:
    """OpenMP would wait for workers that the child lacks when the thread that forked ends there."""
    run(
        """
        def forks():
            assert work() == answer
            for i in range(5):
                child = os.fork()
                if child == 0:
                    assert work() == answer
                    return  # the thread ends
                finish(child, i)
        me = os.getpid()
        thread = threading.Thread(target=forks)
        thread.start()
        thread.join()
        if os.getpid() != me: os._exit(0)
        assert work() == answer
        """
    )


def test_while_threads_compute(device: str) -> None:
    """Locks that other threads hold at the fork are free in the child."""
    run(
        f"""
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                work({device!r})
        def check():
            assert work() == answer
            vkml.manual_seed(1)
            vkml.rand((10,)).tolist()
            vkml.capture(lambda: vkml.ones((3,), device="cpu") + 1, "cpu").replay()
            if {device!r} != "cpu":
                try:
                    vkml.ones((3,), device={device!r})
                except vkml.DeviceError as error:
                    assert "fork" in str(error), error
                else:
                    raise AssertionError("no DeviceError in the child")
        threads = [threading.Thread(target=busy) for _ in range(3)]
        for t in threads: t.start()
        try:
            for i in range(25):
                finish(in_child(check), i)
        finally:
            stop.set()
            for t in threads: t.join()
        assert work() == answer
        """
    )


def test_a_capture_of_another_thread_is_not_the_childs() -> None:
    run(
        """
        inside, done = threading.Event(), threading.Event()
        def slow():
            x = vkml.ones((3,)) + 1
            inside.set()
            done.wait(30)
        thread = threading.Thread(target=lambda: vkml.capture(slow, "cpu"))
        thread.start()
        inside.wait(30)
        def check():
            assert work() == answer
            out = vkml.zeros((2,))
            c = vkml.capture(lambda: out.add_(1), "cpu")
            c.replay()
            assert out.tolist() == [2, 2]
        finish(in_child(check), "capture")
        done.set()
        thread.join()
        """
    )


def test_processes_of_multiprocessing(device: str) -> None:
    run(
        f"""
        import multiprocessing
        work({device!r})
        def task(i):
            return work() == answer
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(task, range(9), chunksize=1) == [True] * 9
        children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(3)]
        for c in children: c.start()
        for c in children:
            c.join(30)
            assert c.exitcode == 0, c.exitcode
        """
    )


def test_children_of_children() -> None:
    run(
        """
        def deeper(level):
            assert work() == answer
            if level: finish(in_child(lambda: deeper(level - 1)), level)
        finish(in_child(lambda: deeper(3)), "outermost")
        """
    )


def test_parallel_loops_go_on_in_parent_and_child() -> None:
    """A fork ends the team of its thread; both processes start a new one."""
    run(
        """
        def threads(): return len(os.listdir("/proc/self/task"))
        assert threads() > 1
        def check():
            assert threads() == 1
            assert work() == answer and threads() > 1
        finish(in_child(check), "child")
        assert work() == answer and threads() > 1
        """
    )

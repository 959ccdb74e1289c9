"""Work done ahead on threads, handed out in order."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _core

_running: weakref.WeakSet[_Queue] = weakref.WeakSet()


class _Stopped(Exception):
    """The consumer has left."""


class _Queue:
    """What the workers and the consumer share. `changed` guards all of it."""

    def __init__(self, count: int, ahead: int) -> None:
        self.count, self.ahead = count, ahead
        self.changed = threading.Condition()
        self.claimed = 0  # the next value that nobody makes yet
        self.turn = 0  # whose middle stage comes next
        self.taken = 0  # values that the consumer has
        self.stopped = False
        self.made: dict[int, tuple[Any, BaseException | None]] = {}
        self.threads: list[threading.Thread] = []
        self.process = os.getpid()

    def _wait(self, ready: Callable[[], bool]) -> None:
        self.changed.wait_for(lambda: self.stopped or ready())
        if self.stopped:
            raise _Stopped

    def claim(self) -> int | None:
        """The number of a value to make, as soon as the consumer is near enough; None when all are taken."""
        with self.changed:
            self._wait(lambda: self.claimed == self.count or self.claimed < self.taken + self.ahead)
            if self.claimed == self.count:
                return None
            self.claimed += 1
            return self.claimed - 1

    def in_turn(self, i: int, work: Callable, *args: Any) -> Any:
        """Calls work() when those of all earlier values have returned."""
        with self.changed:
            self._wait(lambda: self.turn == i)
        try:
            return work(*args)
        finally:
            with self.changed:
                self.turn += 1
                self.changed.notify_all()

    def put(self, i: int, value: Any, error: BaseException | None) -> None:
        with self.changed:
            self.made[i] = (value, error)
            self.changed.notify_all()

    def take(self, i: int) -> Any:
        if os.getpid() != self.process:
            raise _core.Error("DataLoader: expected the process that started the iteration, got a forked child of it")
        with self.changed:
            self._wait(lambda: i in self.made)
            value, error = self.made.pop(i)
            self.taken = i + 1
            self.changed.notify_all()
        if error is not None:
            raise error
        return value

    def stop(self) -> None:
        """Ends the workers: each after what it is doing now."""
        if os.getpid() != self.process:
            return
        with self.changed:
            self.stopped = True
            self.made.clear()
            self.changed.notify_all()
        for thread in self.threads:
            if thread is not threading.current_thread():
                thread.join()


@atexit.register
def _stop_all() -> None:
    for queue in list(_running):
        queue.stop()


def _then(work: Callable, result: tuple[Any, BaseException | None]) -> tuple[Any, BaseException | None]:
    """What became of the next stage of a value; the error of an earlier one stays."""
    value, error = result
    if error is not None:
        return result
    try:
        return work(value), None
    except BaseException as raised:
        return None, raised


def _work(queue: _Queue, first: Callable, middle: Callable, last: Callable) -> None:
    try:
        while (i := queue.claim()) is not None:
            result = _then(first, (i, None))
            result = queue.in_turn(i, _then, middle, result)
            queue.put(i, *_then(last, result))
    except _Stopped:
        pass


def ordered(count: int, first: Callable, middle: Callable, last: Callable, ahead: int, workers: int) -> Iterator[Any]:
    """last(middle(first(i))) for i below count, in order; at most `ahead` of them are made before they are asked for.

    `first` and `last` run on several threads at once, `middle` on one i after the other. An exception comes out where
    its value would; then, and when the iterator is closed or forgotten, the threads end.
    """
    queue = _Queue(count, ahead)
    _running.add(queue)
    try:
        # Daemons: the interpreter joins others before it runs _stop_all.
        for _ in range(min(workers, ahead, count)):
            thread = threading.Thread(target=_work, args=(queue, first, middle, last), name="vkml-data", daemon=True)
            thread.start()
            queue.threads.append(thread)
        for i in range(count):
            try:
                yield queue.take(i)
            except _Stopped:
                raise _core.Error("DataLoader: expected workers, got an interpreter that is ending") from None
    finally:
        queue.stop()

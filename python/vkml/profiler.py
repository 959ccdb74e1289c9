"""What ran on the device and for how long."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core

__all__ = ["Record", "profile"]


@dataclass(frozen=True)
class Record:
    """One dispatch: times in milliseconds on the device's clock, `start_ms` since the first one."""

    label: str
    gpu_ms: float
    start_ms: float
    submission: int


@dataclass(frozen=True)
class _HostSpan:
    label: str
    start_ms: float
    ms: float


class profile:
    """Context manager that times every dispatch inside.

    Parameters
    ----------
    device : device or str, optional
        The device to watch; the default device, if None.

    Examples
    --------
    >>> with vkml.profiler.profile() as p:
    ...     y = vkml.ones(1000).clone()
    >>> [r.label for r in p.records]
    ['fill', 'copy_packed']
    >>> p.table().splitlines()[0].split()[:2]
    ['kernel', 'calls']
    """

    def __init__(self, device: Any = None) -> None:
        self._device = _core.get_default_device() if device is None else _core.device(device)
        self.records: list[Record] = []
        self.host: list[_HostSpan] = []
        self._origin = 0.0

    def __enter__(self):
        _core.synchronize(self._device)
        _core._profile(True, self._device)
        _core._spans(self._device)  # what an earlier profile left
        self._origin = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            spans = _core._spans(self._device)
        finally:
            _core._profile(False, self._device)
        self.host.append(_HostSpan("profile", 0.0, 1e3 * (time.perf_counter() - self._origin)))
        first = min((begin for _, begin, _, _ in spans), default=0)
        self.records += [
            Record(label, (end - begin) / 1e6, (begin - first) / 1e6, at) for label, begin, end, at in spans
        ]

    def span(self, label: str):
        """`with p.span("forward"):` names a stretch of host time in the trace."""
        return _Span(self, label)

    @property
    def total_ms(self) -> float:
        """The sum of all dispatches' times."""
        return sum(r.gpu_ms for r in self.records)

    def table(self) -> str:
        """Time by label, the longest first."""
        sums: dict[str, list[float]] = {}
        for r in self.records:
            entry = sums.setdefault(r.label, [0, 0.0])
            entry[0] += 1
            entry[1] += r.gpu_ms
        total = self.total_ms or 1.0
        lines = [f"{'kernel':<32} {'calls':>7} {'ms':>10} {'us each':>10} {'share':>7}"]
        for label, (calls, ms) in sorted(sums.items(), key=lambda item: -item[1][1]):
            lines.append(f"{label:<32} {calls:>7} {ms:>10.3f} {1e3 * ms / calls:>10.2f} {100 * ms / total:>6.1f}%")
        lines.append(f"{'total':<32} {len(self.records):>7} {self.total_ms:>10.3f}")
        return "\n".join(lines)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Writes a trace that chrome://tracing and Perfetto open; host spans have a track of their own."""

        def event(name: str, start_ms: float, ms: float, track: int, **args: Any) -> dict:
            return {
                "name": name,
                "ph": "X",
                "ts": 1e3 * start_ms,
                "dur": 1e3 * ms,
                "pid": 0,
                "tid": track,
                "args": args,
            }

        tracks = [(0, "host"), (1, str(self._device))]
        events: list[dict] = [
            {"name": "thread_name", "ph": "M", "pid": 0, "tid": i, "args": {"name": n}} for i, n in tracks
        ]
        events += [event(s.label, s.start_ms, s.ms, 0) for s in self.host]
        events += [event(r.label, r.start_ms, r.gpu_ms, 1, submission=r.submission) for r in self.records]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))


class _Span:
    def __init__(self, owner: profile, label: str) -> None:
        self._owner, self._label, self._start = owner, label, 0.0

    def __enter__(self):
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        now = time.perf_counter()
        start = 1e3 * (self._start - self._owner._origin)
        self._owner.host.append(_HostSpan(self._label, start, 1e3 * (now - self._start)))

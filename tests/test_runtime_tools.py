"""Devices, memory, captures, profiles, decisions, configuration, modes."""

import json

import numpy as np
import pytest

import vkml


def test_devices(device):
    record = next(r for r in vkml.devices() if r.device == device)
    assert record.usable and record.name and record.type in ("discrete", "integrated", "virtual", "cpu")
    info = vkml.device_info(device)
    assert info["device"] == device and info["max_workgroup_invocations"] >= 128 and info["shared_memory"] >= 16384


def test_memory_stats(device):
    vkml.reset_peak_memory(device)
    before = vkml.memory_stats(device)
    x = vkml.zeros(1 << 20, device=device)
    held = vkml.memory_stats(device)
    assert (
        held["in_use_bytes"] >= before["in_use_bytes"] + x.nbytes
        and held["live_allocations"] == before["live_allocations"] + 1
    )
    del x
    after = vkml.memory_stats(device)
    assert after["in_use_bytes"] == before["in_use_bytes"] and after["peak_in_use_bytes"] >= held["in_use_bytes"]
    vkml.empty_cache(device)
    assert vkml.memory_stats(device)["reserved_bytes"] <= held["reserved_bytes"]


def test_memory_snapshot(device):
    x = vkml.zeros(1 << 16, device=device)
    slabs = vkml.memory_snapshot(device)
    assert sum(s["in_use_bytes"] for s in slabs) == vkml.memory_stats(device)["in_use_bytes"]
    holding = [
        (s["address"] + b["offset"], b["bytes"], b["in_use"])
        for s in slabs
        for b in s["blocks"]
        if s["address"] + b["offset"] <= x.data_ptr() < s["address"] + b["offset"] + b["bytes"]
    ]
    assert len(holding) == 1 and holding[0][0] == x.data_ptr() and holding[0][1] >= x.nbytes and holding[0][2]
    place = x.data_ptr()
    del x
    after = [b for s in vkml.memory_snapshot(device) for b in s["blocks"] if s["address"] + b["offset"] == place]
    assert [b["in_use"] for b in after] == [False]
    for slab in slabs:
        ends = [b["offset"] + b["bytes"] for b in slab["blocks"]]
        starts = [b["offset"] for b in slab["blocks"]]
        assert all(end <= start for end, start in zip(ends, starts[1:], strict=False)) and max(ends) <= slab["bytes"]


def test_deterministic_seeds(device):
    import random

    def draw():
        return vkml.rand(3, device=device).tolist(), random.random(), np.random.random()

    vkml.set_deterministic(seed=2**40 + 1)
    first = draw()
    assert draw() != first
    vkml.set_deterministic(False, seed=2**40 + 1)
    assert draw() == first and vkml.is_deterministic()
    with pytest.raises(vkml.DTypeError, match="set_deterministic: enabled"):
        vkml.set_deterministic(5)


def test_profile_of_the_cpu(tmp_path):
    with vkml.profiler.profile("cpu") as p, p.span("forward"):
        x = vkml.ones(100, 100)
        (x @ x).sum()
    labels = [r.label for r in p.records]
    assert len(labels) >= 3 and p.total_ms > 0 and "fill" in labels
    assert [r.start_ms for r in p.records] == sorted(r.start_ms for r in p.records)
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tracks = {e["tid"] for e in events if e["ph"] == "X" and e["name"] in labels}
    assert tracks == {1} and all(e["dur"] >= 0 and e["ts"] >= 0 for e in events if e["ph"] == "X")
    assert {e["tid"] for e in events if e["name"] == "forward"} == {0}


def test_capture(device):
    source, target = vkml.zeros(4, device=device), vkml.zeros(4, device=device)
    c = vkml.capture(lambda: target.assign_(source), device)
    source.fill_(3)
    assert target.tolist() == [0] * 4
    c.replay()
    assert target.tolist() == [3] * 4 and len(c) >= 1


def test_reading_inside_a_capture_is_an_error(device):
    x = vkml.ones(2, device=device)
    with pytest.raises(vkml.Error, match="capture"):
        vkml.capture(lambda: x.tolist(), device)
    assert x.tolist() == [1, 1]


def test_an_exception_inside_a_capture_gets_out(device):
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vkml.capture(fails, device)
    assert vkml.ones(2, device=device).tolist() == [1, 1]


def test_profile(vulkan, tmp_path):
    with vkml.profiler.profile(vulkan) as p, p.span("work"):
        x = vkml.ones(1000, device=vulkan)
        x.reshape(10, 100).T.contiguous()
    assert len(p.records) >= 2 and all(r.gpu_ms >= 0 for r in p.records) and p.total_ms > 0
    assert "total" in p.table() and p.records[0].label in p.table()
    p.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["name"] for e in events} >= {"work", p.records[0].label}


def test_eager_mode(device):
    assert not vkml.is_eager()
    with vkml.eager_mode():
        assert vkml.is_eager() and vkml.ones(2, device=device).clone().tolist() == [1, 1]
    assert not vkml.is_eager()


def test_realize_and_synchronize(device):
    x = vkml.ones(2, device=device)
    assert x.realize() is x
    vkml.realize(x, [x])
    vkml.synchronize(device)
    vkml.synchronize()


def test_configuration_and_log_level():
    names = {s["name"] for s in vkml.configuration()}
    assert {"VKML_DEVICE", "VKML_THREADS", "VKML_EAGER", "VKML_LOG"} <= names
    before = vkml.log_level()
    try:
        vkml.set_log_level("off")
        assert vkml.log_level() is vkml.LogLevel.OFF
        vkml.set_log_level(vkml.LogLevel.DEBUG)
        assert vkml.log_level() == 1
    finally:
        vkml.set_log_level(before)


def test_decisions():
    vkml.record_decisions(4)
    try:
        assert vkml.decisions() == []
    finally:
        vkml.stop_recording_decisions()
    assert isinstance(vkml.decisions_published(), int)


def test_number_limits():
    for d in ("float16", "float32", "float64"):
        ours, numpys = vkml.finfo(d), np.finfo(d)
        assert (ours.eps, ours.max, ours.tiny, ours.bits) == (numpys.eps, numpys.max, numpys.tiny, numpys.bits)
    assert vkml.finfo("bfloat16").max == 3.3895313892515355e38
    assert (vkml.iinfo("int16").min, vkml.iinfo("int16").max) == (-32768, 32767)
    with pytest.raises(vkml.DTypeError):
        vkml.finfo("int8")
    with pytest.raises(vkml.DTypeError):
        vkml.iinfo("float32")


def test_reduction_words():
    assert vkml.Reduction.mean == "mean" and str(vkml.Reduction.sum) == "sum"
